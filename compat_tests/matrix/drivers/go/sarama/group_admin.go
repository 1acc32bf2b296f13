package main

import (
	"errors"
	"slices"

	"github.com/IBM/sarama"

	"ottla/matrix/lines"
)

func (d *driver) Committed(asked lines.Group) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	found, err := d.admin.ListConsumerGroupOffsets(asked.Group, map[string][]int32{asked.Topic: asked.Partitions})
	if err != nil {
		return nil, err
	}
	if err := failure(found.GroupError()); err != nil {
		return nil, err
	}
	answer := map[int32]int64{}
	for _, partition := range asked.Partitions {
		answer[partition] = -1
		block := found.GetBlock(asked.Topic, partition)
		if block == nil {
			block = found.GetGroupBlock(asked.Group, asked.Topic, partition)
		}
		if block != nil {
			if err := failure(block.Err); err != nil {
				return nil, err
			}
			answer[partition] = block.Offset
		}
	}
	return answer, nil
}

// groups asks without the ClusterAdmin, which tells neither states nor types.
func (d *driver) groups() (map[string]lines.ListedGroup, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	answer := map[string]lines.ListedGroup{}
	for _, broker := range d.client.Brokers() {
		if err := broker.Open(d.client.Config()); err != nil && !errors.Is(err, sarama.ErrAlreadyConnected) {
			return nil, err
		}
		response, err := broker.ListGroups(&sarama.ListGroupsRequest{Version: 5})
		if err != nil {
			return nil, err
		}
		if err := failure(response.Err); err != nil {
			return nil, err
		}
		for name := range response.Groups {
			data := response.GroupsData[name]
			listed := lines.ListedGroup{State: data.GroupState}
			if data.GroupType != "" {
				listed.Type = &data.GroupType
			}
			answer[name] = listed
		}
	}
	return answer, nil
}

func (d *driver) ListGroups(lines.None) (any, error) { return d.groups() }

// DescribeGroup takes the request that is for a group of its type; one that is not listed is asked for as a classic one.
func (d *driver) DescribeGroup(asked lines.Group) (any, error) {
	listed, err := d.groups()
	if err != nil {
		return nil, err
	}
	kind := "classic"
	if group, found := listed[asked.Group]; found && group.Type != nil {
		kind = *group.Type
	}
	var answer lines.DescribedGroup
	switch kind {
	case "classic":
		answer, err = d.describeClassic(asked.Group)
	case "consumer":
		answer, err = d.describeConsumer(asked.Group)
	default:
		return nil, lines.Unsupported("sarama describes no group of the type " + kind)
	}
	if err != nil {
		return nil, err
	}
	answer.Type = listed[asked.Group].Type
	return answer, nil
}

func (d *driver) describeClassic(name string) (lines.DescribedGroup, error) {
	described, err := d.admin.DescribeConsumerGroups([]string{name})
	if err != nil {
		return lines.DescribedGroup{}, err
	}
	if len(described) != 1 {
		return lines.DescribedGroup{}, sarama.ErrIncompleteResponse
	}
	group := described[0]
	if err := failure(group.Err); err != nil {
		return lines.DescribedGroup{}, err
	}
	answer := lines.DescribedGroup{State: group.State, Protocol: group.Protocol, Members: []lines.Member{}}
	for _, member := range group.Members {
		assignment := lines.Assignment{}
		assigned, err := member.GetMemberAssignment()
		if err != nil {
			return lines.DescribedGroup{}, err
		}
		if assigned != nil { // a member has none until the group is stable
			for topic, partitions := range assigned.Topics {
				assignment[topic] = slices.Sorted(slices.Values(partitions))
			}
		}
		answer.Members = append(answer.Members, lines.Member{
			ClientID: member.ClientId, InstanceID: member.GroupInstanceId, Assignment: assignment,
		})
	}
	return answer, nil
}

// describeConsumer asks without the ClusterAdmin, which knows classic groups only.
func (d *driver) describeConsumer(name string) (lines.DescribedGroup, error) {
	coordinator, err := d.client.Coordinator(name)
	if err != nil {
		return lines.DescribedGroup{}, err
	}
	request := sarama.NewConsumerGroupDescribeRequest(d.client.Config().Version)
	request.GroupIDs = []string{name}
	response, err := coordinator.ConsumerGroupDescribe(request)
	if err != nil {
		return lines.DescribedGroup{}, err
	}
	if len(response.Groups) != 1 {
		return lines.DescribedGroup{}, sarama.ErrIncompleteResponse
	}
	group := response.Groups[0]
	if err := lines.Refusal(int16(group.ErrorCode), group.ErrorMessage); err != nil {
		return lines.DescribedGroup{}, err
	}
	answer := lines.DescribedGroup{State: group.GroupState, Protocol: group.AssignorName, Members: []lines.Member{}}
	for _, member := range group.Members {
		assignment := lines.Assignment{}
		for _, topic := range member.Assignment.TopicPartitions {
			assignment[topic.TopicName] = slices.Sorted(slices.Values(topic.Partitions))
		}
		answer.Members = append(answer.Members, lines.Member{
			ClientID: member.ClientID, InstanceID: member.InstanceID, Assignment: assignment,
		})
	}
	return answer, nil
}

func (d *driver) DeleteGroups(asked lines.Groups) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	answer := map[string]*string{}
	for _, name := range asked.Groups {
		err := d.admin.DeleteConsumerGroup(name)
		lines.Note("delete_groups", err)
		answer[name] = d.lines.Name(err)
	}
	return answer, nil
}

func (d *driver) AlterGroupOffsets(asked lines.Group) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	offsets := map[string]map[int32]sarama.OffsetAndMetadata{}
	for topic, partitions := range asked.Offsets {
		offsets[topic] = map[int32]sarama.OffsetAndMetadata{}
		for partition, offset := range partitions {
			offsets[topic][partition] = sarama.OffsetAndMetadata{Offset: offset, LeaderEpoch: -1}
		}
	}
	response, err := d.admin.AlterConsumerGroupOffsets(asked.Group, offsets, nil)
	if err != nil {
		return nil, err
	}
	for _, partitions := range response.Errors {
		for _, code := range partitions {
			err = errors.Join(err, failure(code))
		}
	}
	return nil, err
}

func (d *driver) DeleteGroupOffsets(asked lines.Group) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	answer := map[int32]*string{}
	for _, partition := range asked.Partitions {
		err := d.admin.DeleteConsumerGroupOffset(asked.Group, asked.Topic, partition)
		lines.Note("delete_group_offsets", err)
		answer[partition] = d.lines.Name(err)
	}
	return answer, nil
}

func (d *driver) RemoveMembers(asked lines.Group) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	response, err := d.admin.RemoveMemberFromConsumerGroup(asked.Group, asked.InstanceIDs)
	if err != nil {
		return nil, err
	}
	for _, member := range response.Members {
		err = errors.Join(err, failure(member.Err))
	}
	return nil, err
}
