package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/matrix/lines"
)

// transactional is a producer, and what is in its transaction.
type transactional struct {
	client *kgo.Client
	asked  lines.TxnInit
	sent   bool
	// Offsets went into the transaction besides the library, which ends none that it has not produced in.
	offsets bool
}

func (d *driver) TxnInit(asked lines.TxnInit) (any, error) {
	if _, taken := d.producers[asked.As]; taken {
		return nil, fmt.Errorf("there is a producer %s already", asked.As)
	}
	made := &transactional{asked: asked}
	if err := d.begin(made); err != nil {
		return nil, err
	}
	d.producers[asked.As] = made
	return nil, nil
}

// begin makes the client and has it get its producer id, which it would do only with the first record.
func (d *driver) begin(made *transactional) error {
	options := []kgo.Opt{kgo.TransactionalID(made.asked.ID), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	if made.asked.TimeoutMs > 0 {
		options = append(options, kgo.TransactionTimeout(time.Duration(made.asked.TimeoutMs)*time.Millisecond))
	}
	client, err := d.newClient(options...)
	if err != nil {
		return err
	}
	ctx, cancel := limited()
	defer cancel()
	if _, _, err := client.ProducerID(ctx); err != nil {
		client.Close()
		return err
	}
	made.client = client
	return nil
}

func (d *driver) producer(name string) (*transactional, error) {
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
	producer.sent, producer.offsets = false, false
	return nil, producer.client.BeginTransaction()
}

func (d *driver) TxnSend(asked lines.TxnSend) (any, error) {
	producer, err := d.producer(asked.As)
	if err != nil {
		return nil, err
	}
	ctx, cancel := limited()
	defer cancel()
	producer.sent = true
	offsets := make([]int64, len(asked.Values))
	failures := make([]error, len(asked.Values))
	for index, value := range asked.Values {
		record := &kgo.Record{Topic: asked.Topic, Partition: asked.Partition, Value: value}
		producer.client.Produce(ctx, record, func(done *kgo.Record, err error) {
			offsets[index], failures[index] = done.Offset, err
		})
	}
	return offsets, errors.Join(append(failures, producer.client.Flush(ctx))...)
}

func (d *driver) TxnCommit(asked lines.Named) (any, error) { return d.txnEnd(asked, kgo.TryCommit) }

func (d *driver) TxnAbort(asked lines.Named) (any, error) { return d.txnEnd(asked, kgo.TryAbort) }

func (d *driver) txnEnd(asked lines.Named, how kgo.TransactionEndTry) (any, error) {
	producer, err := d.producer(asked.As)
	if err != nil {
		return nil, err
	}
	ctx, cancel := limited()
	defer cancel()
	if how == kgo.TryAbort {
		if err := producer.client.AbortBufferedRecords(ctx); err != nil {
			return nil, err
		}
	}
	if producer.offsets && !producer.sent {
		return nil, d.txnEndOffsets(producer, how)
	}
	err = producer.client.EndTransaction(ctx, how)
	if errors.Is(err, kerr.OperationNotAttempted) { // by the library, since its producer id has failed: it tells why here
		if _, _, cause := producer.client.ProducerID(ctx); cause != nil {
			return nil, cause
		}
	}
	return nil, err
}

// TxnOffsets sends the requests themselves: the library commits offsets in a transaction only for a client that is
// the producer and the member in one.
func (d *driver) TxnOffsets(asked lines.TxnOffsets) (any, error) {
	producer, err := d.producer(asked.As)
	if err != nil {
		return nil, err
	}
	ctx, cancel := limited()
	defer cancel()
	id, epoch, err := producer.client.ProducerID(ctx)
	if err != nil {
		return nil, err
	}
	adding := kmsg.NewPtrAddOffsetsToTxnRequest()
	adding.TransactionalID, adding.Group = producer.asked.ID, asked.Group
	adding.ProducerID, adding.ProducerEpoch = id, epoch
	err = retried(func() (int16, error) {
		response, err := adding.RequestWith(ctx, producer.client)
		if err != nil {
			return 0, err
		}
		return response.ErrorCode, nil
	})
	if err != nil {
		return nil, err
	}
	producer.offsets = true
	request := kmsg.NewPtrTxnOffsetCommitRequest()
	request.TransactionalID, request.Group = producer.asked.ID, asked.Group
	request.ProducerID, request.ProducerEpoch = id, epoch
	request.Generation = -1
	if asked.Member != "" {
		member, err := d.member(asked.Member)
		if err != nil {
			return nil, err
		}
		request.MemberID, request.Generation = member.client.GroupMetadata()
		if member.instanceID != "" {
			request.InstanceID = &member.instanceID
		}
	}
	for topic, partitions := range asked.Offsets {
		inTopic := kmsg.NewTxnOffsetCommitRequestTopic()
		inTopic.Topic = topic
		for partition, offset := range partitions {
			committed := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			committed.Partition, committed.Offset = partition, offset
			inTopic.Partitions = append(inTopic.Partitions, committed)
		}
		request.Topics = append(request.Topics, inTopic)
	}
	response, err := request.RequestWith(ctx, producer.client)
	if err != nil {
		return nil, err
	}
	for _, topic := range response.Topics {
		for _, partition := range topic.Partitions {
			err = errors.Join(err, lines.Refusal(partition.ErrorCode, nil))
		}
	}
	return nil, err
}

// txnEndOffsets ends a transaction with nothing but offsets in it. The broker counts the epoch up at the end, which the
// library does not see here, so a new client takes over.
func (d *driver) txnEndOffsets(producer *transactional, how kgo.TransactionEndTry) error {
	ctx, cancel := limited()
	defer cancel()
	id, epoch, err := producer.client.ProducerID(ctx)
	if err != nil {
		return err
	}
	request := kmsg.NewPtrEndTxnRequest()
	request.TransactionalID, request.ProducerID, request.ProducerEpoch = producer.asked.ID, id, epoch
	request.Commit = bool(how)
	err = retried(func() (int16, error) {
		response, err := request.RequestWith(ctx, producer.client)
		if err != nil {
			return 0, err
		}
		return response.ErrorCode, nil
	})
	if err != nil {
		return err
	}
	producer.client.Close()
	return d.begin(producer)
}

// retried asks again while the transaction before is still being ended, as every client does.
func retried(ask func() (int16, error)) error {
	for deadline := time.Now().Add(lines.Patience); ; time.Sleep(20 * time.Millisecond) {
		code, err := ask()
		if err != nil {
			return err
		}
		if code != kerr.ConcurrentTransactions.Code || time.Now().After(deadline) {
			return lines.Refusal(code, nil)
		}
	}
}

func (d *driver) TxnClose(asked lines.Named) (any, error) {
	producer, err := d.producer(asked.As)
	if err != nil {
		return nil, err
	}
	delete(d.producers, asked.As)
	producer.client.Close()
	return nil, nil
}
