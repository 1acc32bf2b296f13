// Runs Kafka's own server-side assignors: one case a line on stdin as JSON, one assignment a line on stdout.
//
//   {"assignor": "uniform", "homogeneous": true, "counts": {topic id: partitions},
//    "members": [{"id", "instance", "topics": [topic id], "assigned": {topic id: [partition]}}]}
//   -> {member id: {topic id: [partition]}}
//
// Members are handed over in the order of the case, so that what depends on it is the same on both sides.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

public class AssignorBridge {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(json.writeValueAsString(assign(json.readTree(line))));
        }
    }

    private static Map<String, Map<String, Set<Integer>>> assign(JsonNode given) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (JsonNode member : given.get("members")) {
            String id = member.get("id").asText();
            Set<Uuid> topics = new LinkedHashSet<>();
            member.get("topics").forEach(topic -> topics.add(Uuid.fromString(topic.asText())));
            Map<Uuid, Set<Integer>> assigned = new LinkedHashMap<>();
            member.get("assigned").fields().forEachRemaining(entry -> {
                Uuid topic = Uuid.fromString(entry.getKey());
                Set<Integer> partitions = new TreeSet<>();
                entry.getValue().forEach(partition -> {
                    partitions.add(partition.asInt());
                    owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(partition.asInt(), id);
                });
                assigned.put(topic, partitions);
            });
            JsonNode instance = member.get("instance");
            members.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(),
                instance.isNull() ? Optional.empty() : Optional.of(instance.asText()),
                topics,
                new Assignment(Collections.unmodifiableMap(assigned))));
        }
        ConsumerGroupPartitionAssignor assignor =
            given.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        SubscriptionType type =
            given.get("homogeneous").asBoolean() ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        JsonNode counts = given.get("counts");
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                JsonNode count = counts.get(topic.toString());
                return count == null ? -1 : count.asInt();
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
        Map<String, Map<String, Set<Integer>>> result = new TreeMap<>();
        assignor.assign(new GroupSpecImpl(members, type, owners), describer).members().forEach((id, assignment) -> {
            Map<String, Set<Integer>> topics = new TreeMap<>();
            assignment.partitions().forEach((topic, partitions) ->
                topics.put(topic.toString(), new TreeSet<>(partitions)));
            result.put(id, topics);
        });
        return result;
    }
}
