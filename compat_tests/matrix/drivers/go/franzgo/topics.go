package main

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/matrix/lines"
)

func (d *driver) Metadata(asked lines.Topics) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	ask := func() (kadm.Metadata, error) { return d.admin.Metadata(ctx, asked.Topics...) }
	if asked.Topics != nil && len(asked.Topics) == 0 { // for Metadata no name means all
		ask = func() (kadm.Metadata, error) { return d.admin.BrokerMetadata(ctx) }
	}
	found, err := ask()
	if err != nil {
		return nil, err
	}
	return d.metadataAnswer(found), nil
}

func (d *driver) metadataAnswer(found kadm.Metadata) lines.Metadata {
	answer := lines.Metadata{
		ClusterID:  found.Cluster,
		Controller: lines.OrNull(found.Controller),
		Brokers:    []lines.Broker{},
		Topics:     map[string]lines.Topic{},
	}
	for _, broker := range found.Brokers {
		answer.Brokers = append(answer.Brokers, lines.Broker{ID: broker.NodeID, Host: broker.Host, Port: broker.Port})
	}
	for name, detail := range found.Topics {
		topic := lines.Topic{Error: d.lines.Name(detail.Err), Partitions: []lines.Partition{}}
		for _, partition := range detail.Partitions.Sorted() {
			topic.Partitions = append(topic.Partitions, lines.Partition{
				Partition: partition.Partition,
				Leader:    partition.Leader,
				Replicas:  partition.Replicas,
				ISR:       partition.ISR,
			})
		}
		answer.Topics[name] = topic
	}
	return answer
}

func (d *driver) CreateTopics(asked lines.NewTopics) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	create := d.admin.CreateTopics
	if asked.ValidateOnly {
		create = d.admin.ValidateCreateTopics
	}
	answer := map[string]*string{}
	for _, topic := range asked.Topics {
		created, err := create(ctx, topic.Partitions, topic.Replication, topic.Configs, topic.Name)
		if err != nil {
			return nil, err
		}
		answer[topic.Name] = d.lines.Name(created[topic.Name].Err)
	}
	return answer, nil
}

func (d *driver) DeleteTopics(asked lines.Topics) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	deleted, err := d.admin.DeleteTopics(ctx, asked.Topics...)
	if err != nil {
		return nil, err
	}
	answer := map[string]*string{}
	for name, topic := range deleted {
		answer[name] = d.lines.Name(topic.Err)
	}
	return answer, nil
}

func (d *driver) CreatePartitions(asked lines.Totals) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	answer := map[string]*string{}
	for name, total := range asked.Topics {
		created, err := d.admin.UpdatePartitions(ctx, int(total), name)
		if err != nil {
			return nil, err
		}
		answer[name] = d.lines.Name(created[name].Err)
	}
	return answer, nil
}

var resourceTypes = map[string]kmsg.ConfigResourceType{
	"topic":  kmsg.ConfigResourceTypeTopic,
	"broker": kmsg.ConfigResourceTypeBroker,
	"group":  kmsg.ConfigResourceTypeGroupConfig,
}

// DescribeConfigs asks without kadm, which does not tell what is read-only.
func (d *driver) DescribeConfigs(asked lines.Resource) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = resourceTypes[asked.Kind], asked.Name
	request := kmsg.NewPtrDescribeConfigsRequest()
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(ctx, d.client)
	if err != nil {
		return nil, err
	}
	answer := map[string]lines.Config{}
	for _, described := range response.Resources {
		if err := lines.Refusal(described.ErrorCode, described.ErrorMessage); err != nil {
			return nil, err
		}
		for _, config := range described.Configs {
			answer[config.Name] = lines.Config{
				Value:     config.Value,
				Default:   config.Source == kmsg.ConfigSourceDefaultConfig,
				ReadOnly:  config.ReadOnly,
				Sensitive: config.IsSensitive,
			}
		}
	}
	return answer, nil
}

func (d *driver) AlterConfigs(asked lines.Resource) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	var changes []kadm.AlterConfig
	for name, value := range asked.Set {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	for _, name := range asked.Delete {
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name})
	}
	var altered kadm.AlterConfigsResponses
	var err error
	switch asked.Kind {
	case "topic":
		altered, err = d.admin.AlterTopicConfigs(ctx, changes, asked.Name)
	case "broker":
		var brokers []int32
		if asked.Name != "" { // without a name the settings are for every broker
			id, failed := strconv.ParseInt(asked.Name, 10, 32)
			if failed != nil {
				return nil, failed
			}
			brokers = append(brokers, int32(id))
		}
		altered, err = d.admin.AlterBrokerConfigs(ctx, changes, brokers...)
	default:
		return nil, d.alterOtherConfigs(asked, changes)
	}
	if err != nil {
		return nil, err
	}
	for _, response := range altered {
		if response.Err != nil {
			return nil, response.Err
		}
	}
	return nil, nil
}

// alterOtherConfigs alters what kadm has no function for: the configs of a group.
func (d *driver) alterOtherConfigs(asked lines.Resource, changes []kadm.AlterConfig) error {
	ctx, cancel := limited()
	defer cancel()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = resourceTypes[asked.Kind], asked.Name
	for _, change := range changes {
		config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		config.Name, config.Value = change.Name, change.Value
		config.Op = kmsg.IncrementalAlterConfigOp(change.Op)
		resource.Configs = append(resource.Configs, config)
	}
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(ctx, d.client)
	if err != nil {
		return err
	}
	for _, altered := range response.Resources {
		if err := lines.Refusal(altered.ErrorCode, altered.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver) DeleteRecords(asked lines.Deletion) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	var offsets kadm.Offsets
	for partition, before := range asked.Before {
		offsets.AddOffset(asked.Topic, partition, before, -1)
	}
	deleted, err := d.admin.DeleteRecords(ctx, offsets)
	answer := map[int32]any{}
	for partition := range asked.Before {
		response, told := deleted[asked.Topic][partition]
		switch {
		case !told && err == nil:
			return nil, fmt.Errorf("no answer for partition %d", partition)
		case !told:
			answer[partition] = d.lines.Name(err)
		case response.Err != nil:
			answer[partition] = d.lines.Name(response.Err)
		default:
			answer[partition] = response.LowWatermark
		}
	}
	return answer, nil
}
