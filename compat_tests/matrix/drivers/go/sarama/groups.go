package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"ottla/matrix/lines"
)

// member is a consumer in a group. Sarama hands over the records of each partition in a goroutine of its own; here
// they wait in one queue for poll.
type member struct {
	group      sarama.ConsumerGroup
	groupID    string
	instanceID *string
	stop       context.CancelFunc
	stopped    chan struct{}
	arrived    chan struct{} // has an element while the queue may have records or there is a failure
	failed     chan error    // of commits and of reading, as they come out of Errors

	lock    sync.Mutex
	session sarama.ConsumerGroupSession
	queue   []*sarama.ConsumerMessage
	failure error // of joining
	next    lines.Offsets
}

// What poll hands over at most, as the consumer of Kafka does.
const maxPollRecords = 500

// A commit tells of failures only by way of a channel, a moment later.
const failureWait = 300 * time.Millisecond

func (d *driver) Join(asked lines.Joining) (any, error) {
	if _, taken := d.members[asked.As]; taken {
		return nil, fmt.Errorf("there is a member %s already", asked.As)
	}
	settings, err := joining(asked)
	if err != nil {
		return nil, err
	}
	group, err := sarama.NewConsumerGroup([]string{d.bootstrap}, asked.Group, settings)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	joined := &member{
		group:   group,
		groupID: asked.Group,
		stop:    stop,
		stopped: make(chan struct{}),
		arrived: make(chan struct{}, 1),
		failed:  make(chan error, 100),
		next:    lines.Offsets{},
	}
	if asked.InstanceID != "" {
		joined.instanceID = &asked.InstanceID
	}
	go joined.consume(ctx, asked.Topics)
	go joined.listen()
	d.members[asked.As] = joined
	return nil, nil
}

func joining(asked lines.Joining) (*sarama.Config, error) {
	if asked.Protocol == "consumer" {
		return nil, lines.Unsupported("sarama has no KIP-848 consumer")
	}
	if asked.Pattern != "" {
		return nil, lines.Unsupported("sarama subscribes to names only")
	}
	level, err := isolation(asked.Isolation)
	if err != nil {
		return nil, err
	}
	settings := config()
	settings.Consumer.Return.Errors = true
	settings.Consumer.IsolationLevel = level
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	settings.Consumer.Offsets.AutoCommit.Enable = false
	settings.Consumer.Group.InstanceId = asked.InstanceID
	settings.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	if asked.SessionMs > 0 {
		settings.Consumer.Group.Session.Timeout = time.Duration(asked.SessionMs) * time.Millisecond
	}
	if asked.Assignor != "" {
		made, known := map[string]func() sarama.BalanceStrategy{
			"range":              sarama.NewBalanceStrategyRange,
			"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
			"sticky":             sarama.NewBalanceStrategySticky,
			"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
		}[asked.Assignor]
		if !known {
			return nil, lines.Unsupported("no assignor " + asked.Assignor)
		}
		settings.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{made()}
	}
	return settings, nil
}

// consume joins again after each session: they end with every rebalance, unless it is a cooperative one.
func (m *member) consume(ctx context.Context, topics []string) {
	defer close(m.stopped)
	for ctx.Err() == nil {
		err := m.group.Consume(ctx, topics, m)
		if errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return
		}
		if err != nil {
			lines.Note("consume", err)
			m.lock.Lock()
			m.failure = err
			m.lock.Unlock()
			m.wake()
			select {
			case <-ctx.Done():
			case <-time.After(failureWait):
			}
		}
	}
}

func (m *member) listen() {
	for err := range m.group.Errors() {
		lines.Note("member", err)
		select {
		case m.failed <- err:
		default:
		}
	}
}

func (m *member) wake() {
	select {
	case m.arrived <- struct{}{}:
	default:
	}
}

// Setup is for sarama to say that a session begins.
func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session, m.failure = session, nil
	return nil
}

// Cleanup is for sarama to say that a session ends; what was not polled is read again by whoever gets it.
func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session, m.queue, m.next = nil, nil, lines.Offsets{}
	return nil
}

// ConsumeClaim is for sarama to hand over the records of one partition, until it is taken away.
func (m *member) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		m.lock.Lock()
		m.queue = append(m.queue, message)
		m.lock.Unlock()
		m.wake()
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	m.queue = slices.DeleteFunc(m.queue, func(message *sarama.ConsumerMessage) bool {
		return message.Topic == claim.Topic() && message.Partition == claim.Partition()
	})
	delete(m.next[claim.Topic()], claim.Partition())
	return nil
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
	deadline := time.After(time.Duration(asked.WaitMs) * time.Millisecond)
	for {
		answer, err := member.take()
		if err != nil || len(answer.Records) > 0 {
			return answer, err
		}
		select {
		case <-member.arrived:
		case <-deadline:
			return member.take()
		}
	}
}

// take is what there is at this moment.
func (m *member) take() (lines.Poll, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	answer := lines.Poll{Assignment: lines.Assignment{}, Records: []lines.Polled{}}
	if m.failure != nil {
		failed := m.failure
		m.failure = nil
		return answer, failed
	}
	if m.session == nil {
		return answer, nil
	}
	for topic, partitions := range m.session.Claims() {
		answer.Assignment[topic] = slices.Sorted(slices.Values(partitions))
	}
	count := min(len(m.queue), maxPollRecords)
	for _, message := range m.queue[:count] {
		answer.Records = append(answer.Records, lines.Polled{
			Topic:     message.Topic,
			Partition: message.Partition,
			Offset:    message.Offset,
			Key:       message.Key,
			Value:     message.Value,
		})
		if m.next[message.Topic] == nil {
			m.next[message.Topic] = map[int32]int64{}
		}
		m.next[message.Topic][message.Partition] = message.Offset + 1
	}
	m.queue = m.queue[count:]
	return answer, nil
}

// Commit marks offsets in the session, the only way that sarama has for a member, and so those of its own partitions.
func (d *driver) Commit(asked lines.Committing) (any, error) {
	member, err := d.member(asked.As)
	if err != nil {
		return nil, err
	}
	member.lock.Lock()
	session, offsets := member.session, asked.Offsets
	if offsets == nil {
		offsets = member.next
	}
	member.lock.Unlock()
	if session == nil {
		return nil, errors.New("there is no session: the member has not joined, or the group rebalances")
	}
	for topic, partitions := range offsets {
		for partition, offset := range partitions {
			if !slices.Contains(session.Claims()[topic], partition) {
				return nil, fmt.Errorf("%s-%d is not claimed in this session", topic, partition)
			}
			// The first is for offsets beyond the one that was marked last, the second for those before it.
			session.MarkOffset(topic, partition, offset, "")
			session.ResetOffset(topic, partition, offset, "")
		}
	}
	for len(member.failed) > 0 {
		<-member.failed
	}
	session.Commit()
	select {
	case failed := <-member.failed:
		return nil, failed
	case <-time.After(failureWait):
		return nil, nil
	}
}

func (d *driver) Leave(asked lines.Named) (any, error) {
	member, err := d.member(asked.As)
	if err != nil {
		return nil, err
	}
	delete(d.members, asked.As)
	return nil, member.close()
}

func (m *member) close() error {
	m.stop()
	err := m.group.Close()
	<-m.stopped
	return err
}
