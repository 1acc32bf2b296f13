package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/matrix/lines"
)

// member is a consumer in a group, and what it was assigned so far.
type member struct {
	client     *kgo.Client
	instanceID string
	lock       sync.Mutex
	assigned   map[string]map[int32]bool
}

var assignors = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func (d *driver) Join(asked lines.Joining) (any, error) {
	if _, taken := d.members[asked.As]; taken {
		return nil, fmt.Errorf("there is a member %s already", asked.As)
	}
	joined := &member{instanceID: asked.InstanceID, assigned: map[string]map[int32]bool{}}
	options, err := joining(asked)
	if err != nil {
		return nil, err
	}
	joined.client, err = d.newClient(append(options,
		kgo.OnPartitionsAssigned(joined.add),
		kgo.OnPartitionsRevoked(joined.remove),
		kgo.OnPartitionsLost(joined.remove),
	)...)
	if err != nil {
		return nil, err
	}
	d.members[asked.As] = joined
	return nil, nil
}

func joining(asked lines.Joining) ([]kgo.Opt, error) {
	isolation, known := isolations[asked.Isolation]
	if !known {
		return nil, lines.Unsupported("no isolation " + asked.Isolation)
	}
	options := []kgo.Opt{
		kgo.ConsumerGroup(asked.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(isolation),
		kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(200 * time.Millisecond),
	}
	if asked.Pattern != "" {
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics(asked.Pattern))
	} else {
		options = append(options, kgo.ConsumeTopics(asked.Topics...))
	}
	if asked.Protocol == "consumer" {
		// The library names the assignor of the broker by its own balancer: sticky is uniform.
		remote := map[string]kgo.GroupBalancer{"": kgo.StickyBalancer(), "uniform": kgo.StickyBalancer(), "range": kgo.RangeBalancer()}
		balancer, known := remote[asked.RemoteAssignor]
		if !known {
			return nil, lines.Unsupported("franz-go asks the broker for uniform or range alone, not " + asked.RemoteAssignor)
		}
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(balancer))
	} else if asked.Assignor != "" {
		balancer, known := assignors[asked.Assignor]
		if !known {
			return nil, lines.Unsupported("no assignor " + asked.Assignor)
		}
		options = append(options, kgo.Balancers(balancer))
	}
	if asked.InstanceID != "" {
		options = append(options, kgo.InstanceID(asked.InstanceID))
	}
	if asked.SessionMs > 0 {
		options = append(options, kgo.SessionTimeout(time.Duration(asked.SessionMs)*time.Millisecond))
	}
	return options, nil
}

func (m *member) add(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for topic, partitions := range added {
		if m.assigned[topic] == nil {
			m.assigned[topic] = map[int32]bool{}
		}
		for _, partition := range partitions {
			m.assigned[topic][partition] = true
		}
	}
}

func (m *member) remove(_ context.Context, _ *kgo.Client, removed map[string][]int32) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for topic, partitions := range removed {
		for _, partition := range partitions {
			delete(m.assigned[topic], partition)
		}
		if len(m.assigned[topic]) == 0 {
			delete(m.assigned, topic)
		}
	}
}

func (m *member) assignment() lines.Assignment {
	m.lock.Lock()
	defer m.lock.Unlock()
	answer := lines.Assignment{}
	for topic, partitions := range m.assigned {
		for partition := range partitions {
			answer[topic] = append(answer[topic], partition)
		}
		slices.Sort(answer[topic])
	}
	return answer
}

func (d *driver) member(name string) (*member, error) {
	found, known := d.members[name]
	if !known {
		return nil, fmt.Errorf("no member %s has joined", name)
	}
	return found, nil
}

func (d *driver) Poll(asked lines.Polling) (any, error) {
	member, err := d.member(asked.As)
	if err != nil {
		return nil, err
	}
	fetches, err := pollWithin(context.Background(), member.client, time.Duration(asked.WaitMs)*time.Millisecond)
	if err != nil {
		return nil, err
	}
	records := []lines.Polled{}
	for record := range fetches.RecordsAll() {
		records = append(records, lines.Polled{
			Topic:     record.Topic,
			Partition: record.Partition,
			Offset:    record.Offset,
			Key:       record.Key,
			Value:     record.Value,
		})
	}
	return lines.Poll{Assignment: member.assignment(), Records: records}, nil
}

func (d *driver) Commit(asked lines.Committing) (any, error) {
	member, err := d.member(asked.As)
	if err != nil {
		return nil, err
	}
	ctx, cancel := limited()
	defer cancel()
	if asked.Offsets == nil {
		return nil, member.client.CommitUncommittedOffsets(ctx)
	}
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for topic, partitions := range asked.Offsets {
		offsets[topic] = map[int32]kgo.EpochOffset{}
		for partition, offset := range partitions {
			offsets[topic][partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
		}
	}
	var failed error
	member.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
		failed = errors.Join(failed, err)
		if err != nil || response == nil {
			return
		}
		for _, topic := range response.Topics {
			for _, partition := range topic.Partitions {
				failed = errors.Join(failed, lines.Refusal(partition.ErrorCode, nil))
			}
		}
	})
	return nil, failed
}

func (d *driver) Leave(asked lines.Named) (any, error) {
	member, err := d.member(asked.As)
	if err != nil {
		return nil, err
	}
	delete(d.members, asked.As)
	defer member.client.CloseAllowingRebalance()
	ctx, cancel := limited()
	defer cancel()
	err = member.client.LeaveGroupContext(ctx)
	if member.instanceID != "" && errors.Is(err, kerr.InvalidRequest) {
		return nil, lines.Unsupported("franz-go does not name the instance when a static member leaves a group of the " +
			"consumer protocol, which brokers refuse")
	}
	return nil, err
}
