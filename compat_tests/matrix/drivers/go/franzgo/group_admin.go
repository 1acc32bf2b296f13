package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/matrix/lines"
)

func (d *driver) Committed(asked lines.Group) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	found, err := d.admin.FetchOffsets(ctx, asked.Group)
	if err != nil {
		return nil, err
	}
	answer := map[int32]int64{}
	for _, partition := range asked.Partitions {
		answer[partition] = -1
		if offset, told := found.Lookup(asked.Topic, partition); told {
			if offset.Err != nil {
				return nil, offset.Err
			}
			answer[partition] = offset.At
		}
	}
	return answer, nil
}

// groups asks without kadm, which does not tell the type of a group.
func (d *driver) groups() (map[string]lines.ListedGroup, error) {
	ctx, cancel := limited()
	defer cancel()
	answer := map[string]lines.ListedGroup{}
	for _, shard := range d.client.RequestSharded(ctx, kmsg.NewPtrListGroupsRequest()) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		response := shard.Resp.(*kmsg.ListGroupsResponse)
		if err := lines.Refusal(response.ErrorCode, nil); err != nil {
			return nil, err
		}
		for _, group := range response.Groups {
			listed := lines.ListedGroup{State: group.GroupState}
			if group.GroupType != "" {
				listed.Type = &group.GroupType
			}
			answer[group.Group] = listed
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
		kind = strings.ToLower(*group.Type)
	}
	describe := map[string]func(string) (lines.DescribedGroup, error){
		"classic":  d.describeClassic,
		"consumer": d.describeConsumer,
		"share":    d.describeShare,
	}[kind]
	if describe == nil {
		return nil, lines.Unsupported("franz-go describes no group of the type " + kind)
	}
	answer, err := describe(asked.Group)
	if err != nil {
		return nil, err
	}
	answer.Type = listed[asked.Group].Type
	return answer, nil
}

func (d *driver) describeClassic(name string) (lines.DescribedGroup, error) {
	ctx, cancel := limited()
	defer cancel()
	described, err := d.admin.DescribeGroups(ctx, name)
	group := described[name]
	if err = errors.Join(err, group.Err); err != nil {
		return lines.DescribedGroup{}, err
	}
	answer := lines.DescribedGroup{State: group.State, Protocol: group.Protocol, Members: []lines.Member{}}
	for _, member := range group.Members {
		assignment := lines.Assignment{}
		if assigned, known := member.Assigned.AsConsumer(); known {
			for _, topic := range assigned.Topics {
				assignment[topic.Topic] = topic.Partitions
				slices.Sort(assignment[topic.Topic])
			}
		}
		answer.Members = append(answer.Members, lines.Member{
			ClientID: member.ClientID, InstanceID: member.InstanceID, Assignment: assignment,
		})
	}
	return answer, nil
}

func (d *driver) describeConsumer(name string) (lines.DescribedGroup, error) {
	ctx, cancel := limited()
	defer cancel()
	described, err := d.admin.DescribeConsumerGroups(ctx, name)
	group := described[name]
	if err = errors.Join(err, group.Err); err != nil {
		return lines.DescribedGroup{}, err
	}
	answer := lines.DescribedGroup{State: group.State, Protocol: group.AssignorName, Members: []lines.Member{}}
	for _, member := range group.Members {
		answer.Members = append(answer.Members, lines.Member{
			ClientID: member.ClientID, InstanceID: member.InstanceID, Assignment: sorted(member.Assignment),
		})
	}
	return answer, nil
}

func (d *driver) describeShare(name string) (lines.DescribedGroup, error) {
	ctx, cancel := limited()
	defer cancel()
	described, err := d.admin.DescribeShareGroups(ctx, name)
	group := described[name]
	if err = errors.Join(err, group.Err); err != nil {
		return lines.DescribedGroup{}, err
	}
	answer := lines.DescribedGroup{State: group.GroupState, Protocol: group.Assignor, Members: []lines.Member{}}
	for _, member := range group.Members {
		answer.Members = append(answer.Members, lines.Member{
			ClientID: member.ClientID, Assignment: sorted(member.Assignment),
		})
	}
	return answer, nil
}

func sorted(set kadm.TopicsSet) lines.Assignment {
	answer := lines.Assignment{}
	for _, topic := range set.Sorted() {
		answer[topic.Topic] = topic.Partitions
	}
	return answer
}

func (d *driver) DeleteGroups(asked lines.Groups) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	deleted, err := d.admin.DeleteGroups(ctx, asked.Groups...)
	answer := map[string]*string{}
	for _, name := range asked.Groups {
		group, told := deleted[name]
		if !told {
			return nil, errors.Join(err, errors.New("no answer for group "+name))
		}
		answer[name] = d.lines.Name(group.Err)
	}
	return answer, nil
}

func (d *driver) AlterGroupOffsets(asked lines.Group) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	var offsets kadm.Offsets
	for topic, partitions := range asked.Offsets {
		for partition, offset := range partitions {
			offsets.AddOffset(topic, partition, offset, -1)
		}
	}
	return nil, d.admin.CommitAllOffsets(ctx, asked.Group, offsets)
}

func (d *driver) DeleteGroupOffsets(asked lines.Group) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	var set kadm.TopicsSet
	set.Add(asked.Topic, asked.Partitions...)
	deleted, err := d.admin.DeleteOffsets(ctx, asked.Group, set)
	if err != nil {
		return nil, err
	}
	answer := map[int32]*string{}
	for partition, failed := range deleted[asked.Topic] {
		answer[partition] = d.lines.Name(failed)
	}
	return answer, nil
}

func (d *driver) RemoveMembers(asked lines.Group) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	removed, err := d.admin.LeaveGroup(ctx, kadm.LeaveGroup(asked.Group).InstanceIDs(asked.InstanceIDs...))
	if err != nil {
		return nil, err
	}
	return nil, removed.Error()
}
