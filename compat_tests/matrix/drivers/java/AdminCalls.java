// The cluster, topics and configs, by way of the Java admin client.

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.Errors;

final class AdminCalls implements AutoCloseable {
    final Admin admin;

    AdminCalls(String bootstrap) {
        admin = Admin.create(Settings.admin(bootstrap));
    }

    void register(Driver driver) {
        driver.on("metadata", this::metadata);
        driver.on("describe_cluster", this::describeCluster);
        driver.on("create_topics", this::createTopics);
        driver.on("delete_topics", call -> outcomes(admin.deleteTopics(call.texts("topics")).topicNameValues()));
        driver.on("create_partitions", this::createPartitions);
        driver.on("describe_configs", this::describeConfigs);
        driver.on("alter_configs", this::alterConfigs);
        driver.on("delete_records", this::deleteRecords);
        driver.on("list_offsets", this::listOffsets);
    }

    @Override
    public void close() {
        admin.close(java.time.Duration.ofSeconds(1));
    }

    // For each of the futures null, or the name of its error.
    static Map<String, Object> outcomes(Map<String, ? extends KafkaFuture<?>> futures) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        for (Map.Entry<String, ? extends KafkaFuture<?>> each : futures.entrySet()) {
            found.put(each.getKey(), outcome(each.getValue(), done -> null));
        }
        return found;
    }

    interface Reading<T> {
        Object read(T value);
    }

    // What the future holds, or the name of its error; an error of the client itself is the call's.
    static <T> Object outcome(KafkaFuture<T> future, Reading<T> reading) throws Exception {
        try {
            return reading.read(future.get());
        } catch (ExecutionException error) {
            String name = Failures.nameOf(error);
            if (name.equals(Failures.LOCAL)) {
                throw error;
            }
            return name;
        }
    }

    private Object metadata(Call call) throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        Map<String, Object> found = new TreeMap<>();
        found.put("cluster_id", cluster.clusterId().get());
        found.put("controller", idOf(cluster.controller().get()));
        List<Object> brokers = new ArrayList<>();
        for (Node node : cluster.nodes().get()) {
            brokers.add(Map.of("id", node.id(), "host", node.host(), "port", node.port()));
        }
        found.put("brokers", brokers);
        Collection<String> names = call.texts("topics");
        if (!call.has("topics")) {
            names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
        }
        Map<String, Object> topics = new TreeMap<>();
        for (Map.Entry<String, KafkaFuture<TopicDescription>> each
                : admin.describeTopics(names).topicNameValues().entrySet()) {
            Object described = outcome(each.getValue(), topic -> partitionsOf(topic));
            Map<String, Object> row = new TreeMap<>();
            row.put("error", described instanceof String ? described : null);
            row.put("partitions", described instanceof String ? List.of() : described);
            topics.put(each.getKey(), row);
        }
        found.put("topics", topics);
        return found;
    }

    private static Object partitionsOf(TopicDescription topic) {
        List<Object> partitions = new ArrayList<>();
        for (TopicPartitionInfo each : topic.partitions()) {
            Map<String, Object> row = new TreeMap<>();
            row.put("partition", each.partition());
            row.put("leader", idOf(each.leader()));
            row.put("replicas", each.replicas().stream().map(Node::id).toList());
            row.put("isr", each.isr().stream().map(Node::id).toList());
            partitions.add(row);
        }
        return partitions;
    }

    private static Integer idOf(Node node) {
        return node == null || node.isEmpty() ? null : node.id();
    }

    private Object describeCluster(Call call) throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        Map<String, Object> found = new TreeMap<>();
        found.put("cluster_id", cluster.clusterId().get());
        found.put("controller", idOf(cluster.controller().get()));
        found.put("brokers", cluster.nodes().get().stream().map(Node::id).sorted().toList());
        return found;
    }

    private Object createTopics(Call call) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (Call each : call.calls("topics")) {
            Optional<Integer> partitions =
                each.has("partitions") ? Optional.of(each.integer("partitions")) : Optional.empty();
            Optional<Short> replication =
                each.has("replication") ? Optional.of((short) each.integer("replication")) : Optional.empty();
            topics.add(new NewTopic(each.text("name"), partitions, replication).configs(each.textByText("configs")));
        }
        CreateTopicsOptions options = new CreateTopicsOptions().validateOnly(call.flag("validate_only"));
        return outcomes(admin.createTopics(topics, options).values());
    }

    private Object createPartitions(Call call) throws Exception {
        Map<String, NewPartitions> totals = new HashMap<>();
        call.map("topics").forEach((topic, total) ->
            totals.put(topic, NewPartitions.increaseTo(((Long) total).intValue())));
        return outcomes(admin.createPartitions(totals).values());
    }

    private static ConfigResource resource(Call call) {
        String kind = call.text("kind").toUpperCase(java.util.Locale.ROOT);
        return new ConfigResource(ConfigResource.Type.valueOf(kind), call.text("name"));
    }

    private Object describeConfigs(Call call) throws Exception {
        ConfigResource resource = resource(call);
        Map<String, Object> found = new TreeMap<>();
        for (ConfigEntry each : admin.describeConfigs(List.of(resource)).values().get(resource).get().entries()) {
            Map<String, Object> row = new TreeMap<>();
            row.put("value", each.value());
            row.put("default", each.isDefault());
            row.put("read_only", each.isReadOnly());
            row.put("sensitive", each.isSensitive());
            found.put(each.name(), row);
        }
        return found;
    }

    private Object alterConfigs(Call call) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        call.textByText("set").forEach((name, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        call.texts("delete").forEach(name ->
            changes.add(new AlterConfigOp(new ConfigEntry(name, null), AlterConfigOp.OpType.DELETE)));
        admin.incrementalAlterConfigs(Map.of(resource(call), changes)).all().get();
        return null;
    }

    private Object deleteRecords(Call call) throws Exception {
        Map<TopicPartition, RecordsToDelete> before = new HashMap<>();
        call.map("before").forEach((partition, offset) ->
            before.put(new TopicPartition(call.text("topic"), Integer.parseInt(partition)),
                RecordsToDelete.beforeOffset((Long) offset)));
        Map<String, Object> found = new TreeMap<>();
        before.keySet().removeIf(each -> {
            String refused = refusalOf(admin, each);
            if (refused != null) {
                found.put(String.valueOf(each.partition()), refused);
            }
            return refused != null;
        });
        for (var each : admin.deleteRecords(before).lowWatermarks().entrySet()) {
            found.put(String.valueOf(each.getKey().partition()), outcome(each.getValue(), low -> low.lowWatermark()));
        }
        return found;
    }

    private Object listOffsets(Call call) throws Exception {
        TopicPartition partition = new TopicPartition(call.text("topic"), call.integer("partition"));
        requireKnown(admin, partition);
        ListOffsetsResult.ListOffsetsResultInfo found =
            admin.listOffsets(Map.of(partition, specOf(call.any("at")))).partitionResult(partition).get();
        return Map.of("offset", found.offset(), "timestamp", found.timestamp());
    }

    // What is asked of the leader of a partition that the broker does not know, the client asks for again and again
    // until its time is up. The broker's word is heard by describing the topic.
    static void requireKnown(Admin admin, TopicPartition partition) {
        String refused = refusalOf(admin, partition);
        if (refused != null) {
            throw new Failures.Refused(Errors.valueOf(refused), "the description of the topic has no " + partition);
        }
    }

    private static String refusalOf(Admin admin, TopicPartition partition) {
        try {
            Object partitions = outcome(
                admin.describeTopics(List.of(partition.topic())).topicNameValues().get(partition.topic()),
                topic -> topic.partitions().size());
            if (partitions instanceof String) {
                return (String) partitions;
            }
            return partition.partition() < (Integer) partitions ? null : Errors.UNKNOWN_TOPIC_OR_PARTITION.name();
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    private static OffsetSpec specOf(Object at) {
        if (at instanceof Long) {
            return OffsetSpec.forTimestamp((Long) at);
        }
        return Map.of(
            "earliest", OffsetSpec.earliest(), "latest", OffsetSpec.latest(),
            "max_timestamp", OffsetSpec.maxTimestamp()).get(at);
    }

    // {topic: [partitions]} as a set.
    static Set<TopicPartition> partitionsOf(Map<String, Object> topics) {
        Set<TopicPartition> found = new java.util.HashSet<>();
        topics.forEach((topic, partitions) -> ((List<?>) partitions).forEach(partition ->
            found.add(new TopicPartition(topic, ((Long) partition).intValue()))));
        return found;
    }
}
