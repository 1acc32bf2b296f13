package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/matrix/lines"
)

// DescribeCluster asks without kadm, which takes what it tells of a cluster from Metadata.
func (d *driver) DescribeCluster(lines.None) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	response, err := kmsg.NewPtrDescribeClusterRequest().RequestWith(ctx, d.client)
	if err != nil {
		return nil, err
	}
	if err := lines.Refusal(response.ErrorCode, response.ErrorMessage); err != nil {
		return nil, err
	}
	answer := lines.Cluster{ClusterID: response.ClusterID, Controller: lines.OrNull(response.ControllerID), Brokers: []int32{}}
	for _, broker := range response.Brokers {
		answer.Brokers = append(answer.Brokers, broker.NodeID)
	}
	slices.Sort(answer.Brokers)
	return answer, nil
}

func (d *driver) DescribeLogDirs(asked lines.Topics) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	found, err := d.admin.Metadata(ctx, asked.Topics...)
	if err != nil {
		return nil, err
	}
	described, err := d.admin.DescribeAllLogDirs(ctx, found.Topics.TopicsSet())
	if err != nil {
		return nil, err
	}
	answer := map[string]map[int32]lines.LogDir{}
	for _, dir := range described.Sorted() {
		if dir.Err != nil {
			return nil, dir.Err
		}
		for topic, partitions := range dir.Topics {
			if answer[topic] == nil {
				answer[topic] = map[int32]lines.LogDir{}
			}
			for number, partition := range partitions {
				answer[topic][number] = lines.LogDir{Size: partition.Size, Lag: partition.OffsetLag, Future: partition.IsFuture}
			}
		}
	}
	return answer, nil
}

func (d *driver) DescribeProducers(asked lines.TopicPartition) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	var set kadm.TopicsSet
	set.Add(asked.Topic, asked.Partition)
	described, err := d.admin.DescribeProducers(ctx, set)
	if err != nil {
		return nil, err
	}
	partition, told := described[asked.Topic].Partitions[asked.Partition]
	if !told {
		return nil, errors.New("no answer for the partition")
	}
	answer := []lines.Producer{}
	for _, producer := range partition.ActiveProducers.Sorted() {
		answer = append(answer, lines.Producer{
			ProducerID:    producer.ProducerID,
			Epoch:         int32(producer.ProducerEpoch),
			LastSequence:  producer.LastSequence,
			InTransaction: producer.CurrentTxnStartOffset >= 0,
		})
	}
	return answer, partition.Err
}

func (d *driver) ListTransactions(lines.None) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	listed, err := d.admin.ListTransactions(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	answer := map[string]string{}
	for id, transaction := range listed {
		answer[id] = transaction.State
	}
	return answer, nil
}

func (d *driver) DescribeTransactions(asked lines.TransactionalIDs) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	described, err := d.admin.DescribeTransactions(ctx, asked.IDs...)
	answer := map[string]any{}
	for _, id := range asked.IDs {
		transaction, told := described[id]
		switch {
		case !told:
			return nil, errors.Join(err, fmt.Errorf("no answer for %s", id))
		case transaction.Err != nil:
			answer[id] = d.lines.Name(transaction.Err)
		default:
			answer[id] = lines.Transaction{State: transaction.State, Topics: sorted(transaction.Topics)}
		}
	}
	return answer, nil
}

func (d *driver) ElectLeaders(asked lines.Election) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	how, known := map[string]kadm.ElectLeadersHow{
		"preferred": kadm.ElectPreferredReplica,
		"unclean":   kadm.ElectLiveReplica,
	}[asked.Kind]
	if !known {
		return nil, lines.Unsupported("no election " + asked.Kind)
	}
	var set kadm.TopicsSet
	for topic, partitions := range asked.Topics {
		set.Add(topic, partitions...)
	}
	elected, err := d.admin.ElectLeaders(ctx, how, set)
	if err != nil {
		return nil, err
	}
	answer := map[string]map[int32]*string{}
	for topic, partitions := range elected {
		answer[topic] = map[int32]*string{}
		for number, partition := range partitions {
			answer[topic][number] = d.lines.Name(partition.Err)
		}
	}
	return answer, nil
}

func (d *driver) DescribeAcls(lines.None) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	everything := kadm.NewACLs().
		AnyResource().
		ResourcePatternType(kadm.ACLPatternAny).
		Operations(kadm.OpAny).
		Allow().AllowHosts().
		Deny().DenyHosts()
	described, err := d.admin.DescribeACLs(ctx, everything)
	if err != nil {
		return nil, err
	}
	answer := []string{}
	for _, result := range described {
		if result.Err != nil {
			return nil, result.Err
		}
		for _, acl := range result.Described {
			answer = append(answer, fmt.Sprintf("%+v", acl))
		}
	}
	return answer, nil
}

func (d *driver) DescribeFeatures(lines.None) (any, error) {
	ctx, cancel := limited()
	defer cancel()
	request := kmsg.NewPtrApiVersionsRequest()
	request.ClientSoftwareName, request.ClientSoftwareVersion = "kgo", "driver"
	response, err := request.RequestWith(ctx, d.client)
	if err != nil {
		return nil, err
	}
	if err := lines.Refusal(response.ErrorCode, nil); err != nil {
		return nil, err
	}
	answer := map[string][2]int16{}
	for _, feature := range response.FinalizedFeatures {
		answer[feature.Name] = [2]int16{feature.MinVersionLevel, feature.MaxVersionLevel}
	}
	return answer, nil
}
