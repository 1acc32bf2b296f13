package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/matrix/lines"
)

// quiet is how long nothing may come before the rest up to the end is taken for gaps: a compacted log may have some
// where its last records were, and the library does not tell how far it is.
const quiet = 3 * time.Second

// quietAtFirst is the same before anything has come: a busy machine takes its time to connect.
const quietAtFirst = 12 * time.Second

var isolations = map[string]kgo.IsolationLevel{
	"":                 kgo.ReadUncommitted(),
	"read_uncommitted": kgo.ReadUncommitted(),
	"read_committed":   kgo.ReadCommitted(),
}

// Fetch reads a partition. It sees the markers of transactions, too, to know when it has come to the end.
func (d *driver) Fetch(asked lines.Fetching) (any, error) {
	// Asked for in any case: the library waits without a word for a partition that a topic does not have.
	end, err := d.offset(asked.Topic, asked.Partition, -1, asked.Isolation)
	if err != nil {
		return nil, err
	}
	isolation, known := isolations[asked.Isolation]
	if !known {
		return nil, lines.Unsupported("no isolation " + asked.Isolation)
	}
	client, err := d.newClient(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
			asked.Topic: {asked.Partition: kgo.NewOffset().At(asked.Offset)},
		}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(isolation),
		kgo.KeepControlRecords(),
		kgo.KeepRetryableFetchErrors(),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := limited()
	defer cancel()
	answer := []lines.Fetched{}
	next := asked.Offset
	done := func() bool {
		if asked.Count != nil {
			return len(answer) >= *asked.Count
		}
		return next == end.Offset // an offset beyond the end is to be refused by the broker
	}
	for !done() {
		wait := quiet
		if next == asked.Offset {
			wait = quietAtFirst
		}
		fetches, err := pollWithin(ctx, client, wait)
		if err != nil {
			return nil, err
		}
		if fetches.NumRecords() == 0 {
			if asked.Count == nil && next < end.Offset {
				break
			}
			if ctx.Err() != nil {
				return nil, errors.New("the records asked for did not come")
			}
		}
		for record := range fetches.RecordsAll() {
			if done() {
				break
			}
			next = record.Offset + 1
			if !record.Attrs.IsControl() {
				answer = append(answer, fetched(record))
			}
		}
	}
	return answer, nil
}

// pollWithin waits for records for a while; that none came is no error.
func pollWithin(ctx context.Context, client *kgo.Client, wait time.Duration) (kgo.Fetches, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	fetches := client.PollFetches(waiting)
	for _, failed := range fetches.Errors() {
		if !errors.Is(failed.Err, context.DeadlineExceeded) {
			return nil, failed.Err
		}
	}
	return fetches, nil
}

func fetched(record *kgo.Record) lines.Fetched {
	headers := []lines.Header{}
	for _, header := range record.Headers {
		headers = append(headers, lines.Header{Name: header.Key, Value: header.Value})
	}
	return lines.Fetched{
		Offset:    record.Offset,
		Key:       record.Key,
		Value:     record.Value,
		Headers:   headers,
		Timestamp: record.Timestamp.UnixMilli(),
	}
}

func (d *driver) ListOffsets(asked lines.Listing) (any, error) {
	timestamp, err := asked.Timestamp()
	if err != nil {
		return nil, err
	}
	return d.offset(asked.Topic, asked.Partition, timestamp, "")
}

// offset asks without kadm, which answers the end of the log where the broker says that no record is as young.
func (d *driver) offset(topic string, partition int32, timestamp int64, isolation string) (lines.Listed, error) {
	ctx, cancel := limited()
	defer cancel()
	wanted := kmsg.NewListOffsetsRequestTopicPartition()
	wanted.Partition, wanted.Timestamp = partition, timestamp
	inTopic := kmsg.NewListOffsetsRequestTopic()
	inTopic.Topic = topic
	inTopic.Partitions = append(inTopic.Partitions, wanted)
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	if isolation == "read_committed" {
		request.IsolationLevel = 1
	}
	request.Topics = append(request.Topics, inTopic)
	response, err := request.RequestWith(ctx, d.client)
	if err != nil {
		return lines.Listed{}, err
	}
	for _, inTopic := range response.Topics {
		for _, listed := range inTopic.Partitions {
			answer := lines.Listed{Offset: listed.Offset, Timestamp: listed.Timestamp}
			return answer, lines.Refusal(listed.ErrorCode, nil)
		}
	}
	return lines.Listed{}, errors.New("no offset was listed")
}

func (d *driver) LeaderEpochEnd(asked lines.Epoch) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	wanted := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	wanted.Partition, wanted.LeaderEpoch = asked.Partition, asked.Epoch
	inTopic := kmsg.NewOffsetForLeaderEpochRequestTopic()
	inTopic.Topic = asked.Topic
	inTopic.Partitions = append(inTopic.Partitions, wanted)
	request := kmsg.NewPtrOffsetForLeaderEpochRequest()
	request.ReplicaID = -1
	request.Topics = append(request.Topics, inTopic)
	response, err := request.RequestWith(ctx, d.client)
	if err != nil {
		return nil, err
	}
	for _, inTopic := range response.Topics {
		for _, found := range inTopic.Partitions {
			return found.EndOffset, lines.Refusal(found.ErrorCode, nil)
		}
	}
	return nil, errors.New("no epoch was found")
}
