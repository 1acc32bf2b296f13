package main

import (
	"net"
	"slices"
	"strconv"

	"github.com/IBM/sarama"

	"ottla/matrix/lines"
)

// Metadata asks without the ClusterAdmin, which tells neither the id of the cluster nor of topics that are not there.
func (d *driver) Metadata(asked lines.Topics) (any, error) {
	broker, err := d.broker()
	if err != nil {
		return nil, err
	}
	found, err := broker.GetMetadata(sarama.NewMetadataRequest(d.client.Config().Version, asked.Topics))
	if err != nil {
		return nil, err
	}
	answer := lines.Metadata{
		Controller: lines.OrNull(found.ControllerID),
		Brokers:    []lines.Broker{},
		Topics:     map[string]lines.Topic{},
	}
	if found.ClusterID != nil {
		answer.ClusterID = *found.ClusterID
	}
	for _, broker := range found.Brokers {
		host, port, err := net.SplitHostPort(broker.Addr())
		if err != nil {
			return nil, err
		}
		number, err := strconv.ParseInt(port, 10, 32)
		if err != nil {
			return nil, err
		}
		answer.Brokers = append(answer.Brokers, lines.Broker{ID: broker.ID(), Host: host, Port: int32(number)})
	}
	if asked.Topics != nil && len(asked.Topics) == 0 {
		return answer, nil // for sarama no name means all
	}
	for _, detail := range found.Topics {
		answer.Topics[detail.Name] = d.topic(detail)
	}
	return answer, nil
}

func (d *driver) topic(detail *sarama.TopicMetadata) lines.Topic {
	slices.SortFunc(detail.Partitions, func(a, b *sarama.PartitionMetadata) int { return int(a.ID - b.ID) })
	topic := lines.Topic{Error: d.lines.Name(failure(detail.Err)), Partitions: []lines.Partition{}}
	for _, partition := range detail.Partitions {
		topic.Partitions = append(topic.Partitions, lines.Partition{
			Partition: partition.ID,
			Leader:    partition.Leader,
			Replicas:  partition.Replicas,
			ISR:       partition.Isr,
		})
	}
	return topic
}

func (d *driver) CreateTopics(asked lines.NewTopics) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	answer := map[string]*string{}
	for _, topic := range asked.Topics {
		err := d.admin.CreateTopic(topic.Name, &sarama.TopicDetail{
			NumPartitions:     topic.Partitions,
			ReplicationFactor: topic.Replication,
			ConfigEntries:     topic.Configs,
		}, asked.ValidateOnly)
		lines.Note("create_topics", err)
		answer[topic.Name] = d.lines.Name(err)
	}
	return answer, nil
}

func (d *driver) DeleteTopics(asked lines.Topics) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	answer := map[string]*string{}
	for _, name := range asked.Topics {
		err := d.admin.DeleteTopic(name)
		lines.Note("delete_topics", err)
		answer[name] = d.lines.Name(err)
	}
	return answer, nil
}

func (d *driver) CreatePartitions(asked lines.Totals) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	answer := map[string]*string{}
	for name, total := range asked.Topics {
		err := d.admin.CreatePartitions(name, total, nil, false)
		lines.Note("create_partitions", err)
		answer[name] = d.lines.Name(err)
	}
	return answer, nil
}

func resourceType(kind string) (sarama.ConfigResourceType, error) {
	known := map[string]sarama.ConfigResourceType{"topic": sarama.TopicResource, "broker": sarama.BrokerResource}
	if found, is := known[kind]; is {
		return found, nil
	}
	return sarama.UnknownResource, lines.Unsupported("sarama knows no configs of a " + kind)
}

// DescribeConfigs tells an empty value where the broker has null: sarama makes no difference.
func (d *driver) DescribeConfigs(asked lines.Resource) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	kind, err := resourceType(asked.Kind)
	if err != nil {
		return nil, err
	}
	entries, err := d.admin.DescribeConfig(sarama.ConfigResource{Type: kind, Name: asked.Name})
	if err != nil {
		return nil, err
	}
	answer := map[string]lines.Config{}
	for _, entry := range entries {
		described := lines.Config{
			Value:     &entry.Value,
			Default:   entry.Source == sarama.SourceDefault,
			ReadOnly:  entry.ReadOnly,
			Sensitive: entry.Sensitive,
		}
		if entry.Sensitive {
			described.Value = nil
		}
		answer[entry.Name] = described
	}
	return answer, nil
}

func (d *driver) AlterConfigs(asked lines.Resource) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	kind, err := resourceType(asked.Kind)
	if err != nil {
		return nil, err
	}
	entries := map[string]sarama.IncrementalAlterConfigsEntry{}
	for name, value := range asked.Set {
		entries[name] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value,
		}
	}
	for _, name := range asked.Delete {
		entries[name] = sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationDelete}
	}
	return nil, d.admin.IncrementalAlterConfig(kind, asked.Name, entries, false)
}

// DeleteRecords asks the leaders without the ClusterAdmin, which does not tell the low watermarks.
func (d *driver) DeleteRecords(asked lines.Deletion) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	answer := map[int32]any{}
	for partition, before := range asked.Before {
		low, err := d.deleteBefore(asked.Topic, partition, before)
		if err != nil {
			answer[partition] = d.lines.Name(err)
		} else {
			answer[partition] = low
		}
	}
	return answer, nil
}

func (d *driver) deleteBefore(topic string, partition int32, before int64) (int64, error) {
	if err := d.client.RefreshMetadata(topic); err != nil {
		return 0, err
	}
	leader, err := d.client.Leader(topic, partition)
	if err != nil {
		return 0, err
	}
	response, err := leader.DeleteRecords(&sarama.DeleteRecordsRequest{
		Version: 2,
		Topics:  map[string]*sarama.DeleteRecordsRequestTopic{topic: {PartitionOffsets: map[int32]int64{partition: before}}},
		Timeout: lines.Patience,
	})
	if err != nil {
		return 0, err
	}
	deleted, told := response.Topics[topic]
	if !told || deleted.Partitions[partition] == nil {
		return 0, sarama.ErrIncompleteResponse
	}
	return deleted.Partitions[partition].LowWatermark, failure(deleted.Partitions[partition].Err)
}
