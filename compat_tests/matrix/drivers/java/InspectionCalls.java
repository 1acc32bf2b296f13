// What an operator looks at, and the election of leaders.

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.ReplicaInfo;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;

final class InspectionCalls {
    private final Admin admin;

    InspectionCalls(Admin admin) {
        this.admin = admin;
    }

    void register(Driver driver) {
        driver.on("describe_log_dirs", this::describeLogDirs);
        driver.on("describe_producers", this::describeProducers);
        driver.on("list_transactions", this::listTransactions);
        driver.on("describe_transactions", this::describeTransactions);
        driver.on("elect_leaders", this::electLeaders);
        driver.on("describe_acls", call -> {
            List<String> found = new ArrayList<>();
            admin.describeAcls(AclBindingFilter.ANY).values().get().forEach(each -> found.add(each.toString()));
            return found;
        });
        driver.on("describe_features", call -> {
            Map<String, Object> found = new TreeMap<>();
            admin.describeFeatures().featureMetadata().get().finalizedFeatures().forEach((name, range) ->
                found.put(name, List.of(range.minVersionLevel(), range.maxVersionLevel())));
            return found;
        });
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> inner(Map<String, Object> rows, String topic) {
        return (Map<String, Object>) rows.computeIfAbsent(topic, name -> new TreeMap<String, Object>());
    }

    private Object describeLogDirs(Call call) throws Exception {
        Set<String> topics = new HashSet<>(call.texts("topics"));
        List<Integer> brokers = admin.describeCluster().nodes().get().stream().map(Node::id).toList();
        Map<String, Object> found = new TreeMap<>();
        for (var directories : admin.describeLogDirs(brokers).allDescriptions().get().values()) {
            for (var directory : directories.values()) {
                if (directory.error() != null) {
                    throw directory.error();
                }
                for (Map.Entry<TopicPartition, ReplicaInfo> each : directory.replicaInfos().entrySet()) {
                    if (topics.contains(each.getKey().topic())) {
                        ReplicaInfo replica = each.getValue();
                        inner(found, each.getKey().topic()).put(
                            String.valueOf(each.getKey().partition()),
                            Map.of("size", replica.size(), "lag", replica.offsetLag(), "future", replica.isFuture()));
                    }
                }
            }
        }
        return found;
    }

    private Object describeProducers(Call call) throws Exception {
        TopicPartition partition = new TopicPartition(call.text("topic"), call.integer("partition"));
        AdminCalls.requireKnown(admin, partition);
        List<Object> found = new ArrayList<>();
        for (ProducerState each
                : admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers()) {
            found.add(Map.of(
                "producer_id", each.producerId(), "epoch", each.producerEpoch(), "last_sequence", each.lastSequence(),
                "in_transaction", each.currentTransactionStartOffset().isPresent()));
        }
        return found;
    }

    private Object listTransactions(Call call) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        for (TransactionListing each : admin.listTransactions().all().get()) {
            found.put(each.transactionalId(), each.state().toString());
        }
        return found;
    }

    private Object describeTransactions(Call call) throws Exception {
        var result = admin.describeTransactions(call.texts("ids"));
        Map<String, Object> found = new TreeMap<>();
        for (String each : call.texts("ids")) {
            found.put(each, AdminCalls.outcome(result.description(each), InspectionCalls::transaction));
        }
        return found;
    }

    private static Object transaction(TransactionDescription described) {
        return Map.of(
            "state", described.state().toString(),
            "topics", GroupCalls.assignmentOf(described.topicPartitions()));
    }

    private Object electLeaders(Call call) throws Exception {
        ElectionType kind = "unclean".equals(call.text("kind")) ? ElectionType.UNCLEAN : ElectionType.PREFERRED;
        Set<TopicPartition> partitions = call.has("topics") ? AdminCalls.partitionsOf(call.map("topics")) : null;
        Map<TopicPartition, Optional<Throwable>> results = admin.electLeaders(kind, partitions).partitions().get();
        Map<String, Object> found = new TreeMap<>();
        results.forEach((partition, error) ->
            inner(found, partition.topic()).put(
                String.valueOf(partition.partition()), error.map(Failures::nameOf).orElse(null)));
        return found;
    }
}
