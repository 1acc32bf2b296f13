package main

import (
	"fmt"
	"slices"

	"github.com/IBM/sarama"

	"ottla/matrix/lines"
)

// DescribeCluster asks without the ClusterAdmin, which takes what it tells of a cluster from Metadata.
func (d *driver) DescribeCluster(lines.None) (any, error) {
	broker, err := d.broker()
	if err != nil {
		return nil, err
	}
	response, err := broker.DescribeCluster(sarama.NewDescribeClusterRequest(d.client.Config().Version))
	if err != nil {
		return nil, err
	}
	if err := lines.Refusal(int16(response.Err), response.ErrorMessage); err != nil {
		return nil, err
	}
	answer := lines.Cluster{ClusterID: response.ClusterID, Controller: lines.OrNull(response.ControllerID), Brokers: []int32{}}
	for _, broker := range response.Brokers {
		answer.Brokers = append(answer.Brokers, broker.BrokerID)
	}
	slices.Sort(answer.Brokers)
	return answer, nil
}

func (d *driver) DescribeLogDirs(asked lines.Topics) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	var brokers []int32
	for _, broker := range d.client.Brokers() {
		brokers = append(brokers, broker.ID())
	}
	described, err := d.admin.DescribeLogDirs(brokers)
	if err != nil {
		return nil, err
	}
	answer := map[string]map[int32]lines.LogDir{}
	for _, dirs := range described {
		for _, dir := range dirs {
			if err := failure(dir.ErrorCode); err != nil {
				return nil, err
			}
			for _, topic := range dir.Topics { // sarama asks for all of them
				if !slices.Contains(asked.Topics, topic.Topic) {
					continue
				}
				if answer[topic.Topic] == nil {
					answer[topic.Topic] = map[int32]lines.LogDir{}
				}
				for _, partition := range topic.Partitions {
					answer[topic.Topic][partition.PartitionID] = lines.LogDir{
						Size: partition.Size, Lag: partition.OffsetLag, Future: partition.IsTemporary,
					}
				}
			}
		}
	}
	return answer, nil
}

func (d *driver) DescribeProducers(asked lines.TopicPartition) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	if err := d.client.RefreshMetadata(asked.Topic); err != nil {
		return nil, err
	}
	described, err := d.admin.DescribeProducers(map[string][]int32{asked.Topic: {asked.Partition}})
	if err != nil {
		return nil, err
	}
	partition, told := described[asked.Topic][asked.Partition]
	if !told {
		return nil, sarama.ErrIncompleteResponse
	}
	answer := []lines.Producer{}
	for _, producer := range partition.ActiveProducers {
		answer = append(answer, lines.Producer{
			ProducerID:    producer.ProducerID,
			Epoch:         producer.ProducerEpoch,
			LastSequence:  producer.LastSequence,
			InTransaction: producer.CurrentTxnStartOffset >= 0,
		})
	}
	slices.SortFunc(answer, func(a, b lines.Producer) int { return int(a.ProducerID - b.ProducerID) })
	return answer, lines.Refusal(int16(partition.ErrorCode), partition.ErrorMessage)
}

func (d *driver) ListTransactions(lines.None) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	listed, err := d.admin.ListTransactions(nil, nil, -1)
	if err != nil {
		return nil, err
	}
	answer := map[string]string{}
	for _, transaction := range listed {
		answer[transaction.TransactionalID] = transaction.TransactionState
	}
	return answer, nil
}

func (d *driver) DescribeTransactions(asked lines.TransactionalIDs) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	described, err := d.admin.DescribeTransactions(asked.IDs)
	answer := map[string]any{}
	for _, id := range asked.IDs {
		transaction, told := described[id]
		if !told {
			return nil, fmt.Errorf("no answer for %s: %w", id, err)
		}
		if err := failure(transaction.ErrorCode); err != nil {
			answer[id] = d.lines.Name(err)
			continue
		}
		topics := map[string][]int32{}
		for _, topic := range transaction.Topics {
			topics[topic.Topic] = slices.Sorted(slices.Values(topic.Partitions))
		}
		answer[id] = lines.Transaction{State: transaction.TransactionState, Topics: topics}
	}
	return answer, nil
}

func (d *driver) ElectLeaders(asked lines.Election) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	kind, known := map[string]sarama.ElectionType{
		"preferred": sarama.PreferredElection,
		"unclean":   sarama.UncleanElection,
	}[asked.Kind]
	if !known {
		return nil, lines.Unsupported("no election " + asked.Kind)
	}
	elected, err := d.admin.ElectLeaders(kind, asked.Topics)
	if err != nil {
		return nil, err
	}
	answer := map[string]map[int32]*string{}
	for topic, partitions := range elected {
		answer[topic] = map[int32]*string{}
		for number, result := range partitions {
			answer[topic][number] = d.lines.Name(failure(result.ErrorCode))
		}
	}
	return answer, nil
}

func (d *driver) DescribeAcls(lines.None) (any, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	listed, err := d.admin.ListAcls(sarama.AclFilter{
		Version:                   1,
		ResourceType:              sarama.AclResourceAny,
		ResourcePatternTypeFilter: sarama.AclPatternAny,
		Operation:                 sarama.AclOperationAny,
		PermissionType:            sarama.AclPermissionAny,
	})
	if err != nil {
		return nil, err
	}
	answer := []string{}
	for _, resource := range listed {
		for _, acl := range resource.Acls {
			answer = append(answer, fmt.Sprintf("%+v %+v", resource.Resource, *acl))
		}
	}
	return answer, nil
}

func (d *driver) DescribeFeatures(lines.None) (any, error) {
	broker, err := d.broker()
	if err != nil {
		return nil, err
	}
	response, err := broker.ApiVersions(&sarama.ApiVersionsRequest{
		Version: 3, ClientSoftwareName: "sarama", ClientSoftwareVersion: "driver",
	})
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
