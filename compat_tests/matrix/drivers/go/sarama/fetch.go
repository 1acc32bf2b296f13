package main

import (
	"errors"
	"time"

	"github.com/IBM/sarama"

	"ottla/matrix/lines"
)

// quiet is how long nothing may come before the rest up to the end is taken for markers of transactions and for gaps:
// sarama does not tell how far it is.
const quiet = 2 * time.Second

func isolation(name string) (sarama.IsolationLevel, error) {
	switch name {
	case "", "read_uncommitted":
		return sarama.ReadUncommitted, nil
	case "read_committed":
		return sarama.ReadCommitted, nil
	}
	return sarama.ReadUncommitted, lines.Unsupported("no isolation " + name)
}

func (d *driver) Fetch(asked lines.Fetching) (any, error) {
	level, err := isolation(asked.Isolation)
	if err != nil {
		return nil, err
	}
	end, err := d.offset(asked.Topic, asked.Partition, sarama.OffsetNewest, level)
	if err != nil {
		return nil, err
	}
	settings := config()
	settings.Consumer.IsolationLevel = level
	settings.Consumer.Return.Errors = true
	consumer, err := sarama.NewConsumer([]string{d.bootstrap}, settings)
	if err != nil {
		return nil, err
	}
	defer func() { lines.Note("fetch", consumer.Close()) }()
	reading, err := consumer.ConsumePartition(asked.Topic, asked.Partition, asked.Offset)
	if err != nil {
		return nil, err
	}
	defer func() { lines.Note("fetch", reading.Close()) }()
	answer := []lines.Fetched{}
	next := asked.Offset
	done := func() bool {
		if asked.Count != nil {
			return len(answer) >= *asked.Count
		}
		return next >= end.Offset
	}
	for deadline := time.After(lines.Patience); !done(); {
		var silence <-chan time.Time
		if asked.Count == nil {
			silence = time.After(quiet)
		}
		select {
		case message := <-reading.Messages():
			if message == nil {
				return nil, errors.New("the consumer stopped by itself")
			}
			next = message.Offset + 1
			answer = append(answer, fetched(message))
		case failed := <-reading.Errors():
			return nil, failed
		case <-silence:
			return answer, nil
		case <-deadline:
			return nil, errors.New("the records asked for did not come")
		}
	}
	return answer, nil
}

func fetched(message *sarama.ConsumerMessage) lines.Fetched {
	headers := []lines.Header{}
	for _, header := range message.Headers {
		headers = append(headers, lines.Header{Name: string(header.Key), Value: header.Value})
	}
	return lines.Fetched{
		Offset:    message.Offset,
		Key:       message.Key,
		Value:     message.Value,
		Headers:   headers,
		Timestamp: message.Timestamp.UnixMilli(),
	}
}

func (d *driver) ListOffsets(asked lines.Listing) (any, error) {
	timestamp, err := asked.Timestamp()
	if err != nil {
		return nil, err
	}
	if asked.At == "max_timestamp" {
		return nil, lines.Unsupported("sarama's ListOffsets request ends at version 6, one before the greatest timestamp")
	}
	return d.offset(asked.Topic, asked.Partition, timestamp, sarama.ReadUncommitted)
}

func (d *driver) offset(topic string, partition int32, at int64, level sarama.IsolationLevel) (lines.Listed, error) {
	if err := d.connect(); err != nil {
		return lines.Listed{}, err
	}
	if err := d.client.RefreshMetadata(topic); err != nil {
		return lines.Listed{}, err
	}
	listed, err := d.admin.ListOffsets(
		map[string]map[int32]int64{topic: {partition: at}}, &sarama.ListOffsetsOptions{IsolationLevel: level},
	)
	if err != nil {
		return lines.Listed{}, err
	}
	found := listed[topic][partition]
	if found == nil {
		return lines.Listed{}, sarama.ErrIncompleteResponse
	}
	if found.Err != nil && !errors.Is(found.Err, sarama.ErrNoError) { // which sarama says where all is well
		return lines.Listed{}, found.Err
	}
	return lines.Listed{Offset: found.Offset, Timestamp: found.Timestamp}, nil
}
