package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/matrix/lines"
)

// shareMember is a consumer in a share group with the records of its last poll, and how acknowledging them went.
type shareMember struct {
	client *kgo.Client
	polled map[place]*kgo.Record
	lock   sync.Mutex
	failed error
}

type place struct {
	topic     string
	partition int32
	offset    int64
}

var acknowledgements = map[string]kgo.AckStatus{
	"accept":  kgo.AckAccept,
	"release": kgo.AckRelease,
	"reject":  kgo.AckReject,
}

// ShareJoin makes the same client in either mode: the library accepts by itself, at the next poll, what was not
// acknowledged until then.
func (d *driver) ShareJoin(asked lines.Joining) (any, error) {
	if _, taken := d.sharing[asked.As]; taken {
		return nil, fmt.Errorf("there is a member %s already", asked.As)
	}
	joined := &shareMember{polled: map[place]*kgo.Record{}}
	client, err := d.newClient(
		kgo.ShareGroup(asked.Group),
		kgo.ConsumeTopics(asked.Topics...),
		kgo.ShareAckCallback(joined.acknowledged),
	)
	if err != nil {
		return nil, err
	}
	joined.client = client
	d.sharing[asked.As] = joined
	return nil, nil
}

func (m *shareMember) acknowledged(_ *kgo.Client, results kgo.ShareAckResults) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.failed = errors.Join(m.failed, results.Error())
}

func (m *shareMember) failure() error {
	m.lock.Lock()
	defer m.lock.Unlock()
	failed := m.failed
	m.failed = nil
	return failed
}

func (d *driver) shareMember(name string) (*shareMember, error) {
	found, known := d.sharing[name]
	if !known {
		return nil, fmt.Errorf("no member %s has joined", name)
	}
	return found, nil
}

func (d *driver) SharePoll(asked lines.Polling) (any, error) {
	member, err := d.shareMember(asked.As)
	if err != nil {
		return nil, err
	}
	fetches, err := pollWithin(context.Background(), member.client, time.Duration(asked.WaitMs)*time.Millisecond)
	if err != nil {
		return nil, err
	}
	clear(member.polled)
	answer := []lines.Shared{}
	for record := range fetches.RecordsAll() {
		member.polled[place{record.Topic, record.Partition, record.Offset}] = record
		answer = append(answer, lines.Shared{
			Topic:      record.Topic,
			Partition:  record.Partition,
			Offset:     record.Offset,
			Value:      record.Value,
			Deliveries: record.DeliveryCount(),
		})
	}
	return answer, nil
}

func (d *driver) ShareAcknowledge(asked lines.Acknowledging) (any, error) {
	member, err := d.shareMember(asked.As)
	if err != nil {
		return nil, err
	}
	for _, told := range asked.Records {
		record, polled := member.polled[place{told.Topic, told.Partition, told.Offset}]
		if !polled {
			return nil, fmt.Errorf("offset %d of %s-%d was not in the last poll", told.Offset, told.Topic, told.Partition)
		}
		kind, known := acknowledgements[told.Kind]
		if !known {
			return nil, lines.Unsupported("no acknowledgement " + told.Kind)
		}
		record.Ack(kind)
	}
	ctx, cancel := limited()
	defer cancel()
	if err := member.client.FlushAcks(ctx); err != nil {
		return nil, err
	}
	return nil, member.failure()
}

func (d *driver) ShareLeave(asked lines.Named) (any, error) {
	member, err := d.shareMember(asked.As)
	if err != nil {
		return nil, err
	}
	delete(d.sharing, asked.As)
	member.client.Close()
	return nil, nil
}
