package main

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/matrix/lines"
)

var codecs = map[string]kgo.CompressionCodec{
	"":       kgo.NoCompression(),
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

// Produce writes with a producer made for this call alone: nearly all that a call says is an option of it.
func (d *driver) Produce(asked lines.Production) (any, error) {
	options, err := producing(asked)
	if err != nil {
		return nil, err
	}
	client, err := d.newClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := limited()
	defer cancel()
	answer := make([]lines.Produced, len(asked.Records))
	for index, told := range asked.Records {
		client.Produce(ctx, record(asked.Topic, told), func(done *kgo.Record, err error) {
			answer[index] = lines.Produced{Partition: done.Partition, Offset: done.Offset, Error: d.lines.Name(err)}
			lines.Note("produce", err)
		})
	}
	return answer, client.Flush(ctx)
}

func producing(asked lines.Production) ([]kgo.Opt, error) {
	codec, known := codecs[asked.Codec]
	if !known {
		return nil, lines.Unsupported("no codec " + asked.Codec)
	}
	options := []kgo.Opt{
		kgo.AllowAutoTopicCreation(), // as most producers do by default
		kgo.ProducerBatchCompression(codec),
		kgo.RecordPartitioner(chosen{kgo.StickyKeyPartitioner(nil)}),
	}
	acks := int16(-1)
	if asked.Acks != nil {
		acks = *asked.Acks
	}
	switch acks {
	case -1:
		options = append(options, kgo.RequiredAcks(kgo.AllISRAcks()))
	case 0:
		options = append(options, kgo.RequiredAcks(kgo.NoAck()))
	case 1:
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()))
	default:
		return nil, lines.Unsupported(fmt.Sprintf("no acks of %d", acks))
	}
	if !asked.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if asked.MaxRequestBytes > 0 {
		options = append(options, kgo.ProducerBatchMaxBytes(int32(asked.MaxRequestBytes)))
	}
	return options, nil
}

func record(topic string, told lines.Record) *kgo.Record {
	made := &kgo.Record{Topic: topic, Partition: noPartition, Key: told.Key, Value: told.Value}
	if told.Partition != nil {
		made.Partition = *told.Partition
	}
	if told.Timestamp != nil {
		made.Timestamp = time.UnixMilli(*told.Timestamp)
	}
	for _, header := range told.Headers {
		made.Headers = append(made.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
	}
	return made
}

// noPartition is of a record whose partition the library is to choose.
const noPartition = -1

// chosen obeys the partition that a record has, and leaves the others to the library's own partitioner.
type chosen struct{ kgo.Partitioner }

func (c chosen) ForTopic(topic string) kgo.TopicPartitioner {
	return chosenForTopic{c.Partitioner.ForTopic(topic)}
}

type chosenForTopic struct{ kgo.TopicPartitioner }

func (c chosenForTopic) RequiresConsistency(record *kgo.Record) bool {
	return record.Partition != noPartition || c.TopicPartitioner.RequiresConsistency(record)
}

func (c chosenForTopic) Partition(record *kgo.Record, partitions int) int {
	if record.Partition != noPartition {
		return int(record.Partition)
	}
	return c.TopicPartitioner.Partition(record, partitions)
}
