package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"ottla/matrix/lines"
)

func (d *driver) TxnInit(asked lines.TxnInit) (any, error) {
	if _, taken := d.producers[asked.As]; taken {
		return nil, fmt.Errorf("there is a producer %s already", asked.As)
	}
	settings := config()
	settings.Producer.Return.Successes = true
	settings.Producer.RequiredAcks = sarama.WaitForAll
	settings.Producer.Idempotent = true
	settings.Net.MaxOpenRequests = 1
	settings.Producer.Partitioner = sarama.NewManualPartitioner
	settings.Producer.Transaction.ID = asked.ID
	if asked.TimeoutMs > 0 {
		settings.Producer.Transaction.Timeout = time.Duration(asked.TimeoutMs) * time.Millisecond
	}
	producer, err := sarama.NewSyncProducer([]string{d.bootstrap}, settings)
	if err != nil {
		return nil, err
	}
	d.producers[asked.As] = producer
	return nil, nil
}

func (d *driver) producer(name string) (sarama.SyncProducer, error) {
	found, known := d.producers[name]
	if !known {
		return nil, fmt.Errorf("no producer %s was initialised", name)
	}
	return found, nil
}

func (d *driver) TxnBegin(asked lines.Named) (any, error) {
	producer, err := d.producer(asked.As)
	if err != nil {
		return nil, err
	}
	return nil, producer.BeginTxn()
}

func (d *driver) TxnSend(asked lines.TxnSend) (any, error) {
	producer, err := d.producer(asked.As)
	if err != nil {
		return nil, err
	}
	var messages []*sarama.ProducerMessage
	for _, value := range asked.Values {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: asked.Topic, Partition: asked.Partition, Value: sarama.ByteEncoder(value),
		})
	}
	failed, err := sent(producer, messages)
	offsets := []int64{}
	for _, message := range messages {
		offsets = append(offsets, message.Offset)
		err = errors.Join(err, failed[message])
	}
	return offsets, err
}

func (d *driver) TxnCommit(asked lines.Named) (any, error) {
	producer, err := d.producer(asked.As)
	if err != nil {
		return nil, err
	}
	return nil, producer.CommitTxn()
}

func (d *driver) TxnAbort(asked lines.Named) (any, error) {
	producer, err := d.producer(asked.As)
	if err != nil {
		return nil, err
	}
	return nil, producer.AbortTxn()
}

// TxnOffsets only tells the library: it sends the offsets when the transaction is committed.
func (d *driver) TxnOffsets(asked lines.TxnOffsets) (any, error) {
	producer, err := d.producer(asked.As)
	if err != nil {
		return nil, err
	}
	metadata := sarama.NewConsumerGroupMetadata(asked.Group)
	if asked.Member != "" {
		member, err := d.member(asked.Member)
		if err != nil {
			return nil, err
		}
		member.lock.Lock()
		session := member.session
		member.lock.Unlock()
		if session == nil {
			return nil, errors.New("there is no session: the member has not joined, or the group rebalances")
		}
		metadata = sarama.NewConsumerGroupMetadataFromSession(session, asked.Group, member.instanceID)
	}
	offsets := map[string][]*sarama.PartitionOffsetMetadata{}
	for topic, partitions := range asked.Offsets {
		for partition, offset := range partitions {
			offsets[topic] = append(offsets[topic], &sarama.PartitionOffsetMetadata{
				Partition: partition, Offset: offset, LeaderEpoch: -1,
			})
		}
	}
	return nil, producer.AddOffsetsToTxnWithGroupMetadata(offsets, metadata)
}

func (d *driver) TxnClose(asked lines.Named) (any, error) {
	producer, err := d.producer(asked.As)
	if err != nil {
		return nil, err
	}
	delete(d.producers, asked.As)
	return nil, producer.Close()
}
