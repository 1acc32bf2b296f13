package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"ottla/matrix/lines"
)

var codecs = map[string]sarama.CompressionCodec{
	"":       sarama.CompressionNone,
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

// Produce writes with a producer made for this call alone: nearly all that a call says is an option of it.
func (d *driver) Produce(asked lines.Production) (any, error) {
	settings, err := producing(asked)
	if err != nil {
		return nil, err
	}
	producer, err := sarama.NewSyncProducer([]string{d.bootstrap}, settings)
	if err != nil {
		return nil, err
	}
	defer func() { lines.Note("produce", producer.Close()) }()
	messages := make([]*sarama.ProducerMessage, len(asked.Records))
	for index, told := range asked.Records {
		messages[index] = message(asked.Topic, told)
	}
	failed, err := sent(producer, messages)
	if err != nil {
		return nil, err
	}
	answer := make([]lines.Produced, len(messages))
	for index, message := range messages {
		answer[index] = lines.Produced{
			Partition: message.Partition, Offset: message.Offset, Error: d.lines.Name(failed[message]),
		}
		lines.Note("produce", failed[message])
	}
	return answer, nil
}

// sent waits until all messages are acknowledged or failed, and tells why those that failed did.
func sent(producer sarama.SyncProducer, messages []*sarama.ProducerMessage) (map[*sarama.ProducerMessage]error, error) {
	failed := map[*sarama.ProducerMessage]error{}
	err := producer.SendMessages(messages)
	var each sarama.ProducerErrors
	if errors.As(err, &each) {
		for _, one := range each {
			failed[one.Msg] = one.Err
		}
		return failed, nil
	}
	return failed, err
}

func producing(asked lines.Production) (*sarama.Config, error) {
	codec, known := codecs[asked.Codec]
	if !known {
		return nil, lines.Unsupported("no codec " + asked.Codec)
	}
	settings := config()
	settings.Metadata.AllowAutoTopicCreation = true // as sarama does by default
	settings.Producer.Return.Successes = true
	settings.Producer.Compression = codec
	settings.Producer.Partitioner = newChosen
	settings.Producer.RequiredAcks = sarama.WaitForAll
	if asked.Acks != nil {
		if *asked.Acks < -1 || *asked.Acks > 1 {
			return nil, lines.Unsupported(fmt.Sprintf("no acks of %d", *asked.Acks))
		}
		settings.Producer.RequiredAcks = sarama.RequiredAcks(*asked.Acks)
	}
	if asked.Idempotent {
		settings.Producer.Idempotent = true
		settings.Net.MaxOpenRequests = 1 // sarama refuses more for it
	}
	if asked.MaxRequestBytes > 0 {
		settings.Producer.MaxMessageBytes = asked.MaxRequestBytes
	}
	return settings, nil
}

func message(topic string, told lines.Record) *sarama.ProducerMessage {
	made := &sarama.ProducerMessage{Topic: topic}
	if told.Partition != nil {
		made.Partition, made.Metadata = *told.Partition, chosenPartition
	}
	if told.Key != nil {
		made.Key = sarama.ByteEncoder(told.Key)
	}
	if told.Value != nil {
		made.Value = sarama.ByteEncoder(told.Value)
	}
	if told.Timestamp != nil {
		made.Timestamp = time.UnixMilli(*told.Timestamp)
	}
	for _, header := range told.Headers {
		made.Headers = append(made.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
	}
	return made
}

// chosenPartition is the metadata of a message whose partition is not for the library to choose.
const chosenPartition = "chosen"

// chosen obeys the partition that was told, and leaves the other messages to sarama's own partitioner.
type chosen struct{ sarama.Partitioner }

func newChosen(topic string) sarama.Partitioner { return chosen{sarama.NewHashPartitioner(topic)} }

func (c chosen) Partition(message *sarama.ProducerMessage, partitions int32) (int32, error) {
	if message.Metadata == chosenPartition {
		return message.Partition, nil
	}
	return c.Partitioner.Partition(message, partitions)
}
