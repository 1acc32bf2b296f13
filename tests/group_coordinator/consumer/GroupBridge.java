// What Kafka's own group coordinator makes of a case: one case a line on stdin as JSON, one answer a line on stdout.
//
// Assignors:
//
//   {"assignor": "uniform", "homogeneous": true, "counts": {topic id: partitions},
//    "members": [{"id", "instance", "topics": [topic id], "assigned": {topic id: [partition]}}]}
//   -> {member id: {topic id: [partition]}}
//
// Members are handed over in the order of the case, so that what depends on it is the same on both sides.
//
// The hash of topics:     {"topics": [{"name", "id", "racks": [[rack] for each partition]}]} -> hash as a string
// Regular expressions:    {"regex": expression, "names": [name]} -> {"error": description or null, "matches": [name]}

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

public class GroupBridge {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode given = json.readTree(line);
            Object answer = given.has("topics") ? hash(given) : given.has("regex") ? match(given) : assign(given);
            System.out.println(json.writeValueAsString(answer));
        }
    }

    private static String hash(JsonNode given) {
        Map<String, Long> hashes = new HashMap<>();
        for (JsonNode topic : given.get("topics")) {
            String name = topic.get("name").asText();
            hashes.put(name, Utils.computeTopicHash(name, imageOf(topic)));
        }
        return Long.toString(Utils.computeGroupHash(hashes));
    }

    private static Map<String, Object> match(JsonNode given) {
        Map<String, Object> answer = new HashMap<>();
        List<String> matches = new ArrayList<>();
        answer.put("error", null);
        answer.put("matches", matches);
        try {
            Pattern pattern = Pattern.compile(given.get("regex").asText());
            given.get("names").forEach(name -> {
                if (pattern.matcher(name.asText()).matches()) {
                    matches.add(name.asText());
                }
            });
        } catch (PatternSyntaxException e) {
            answer.put("error", e.getDescription());
        }
        return answer;
    }

    private static CoordinatorMetadataImage imageOf(JsonNode topic) {
        CoordinatorMetadataImage.TopicMetadata metadata = new CoordinatorMetadataImage.TopicMetadata() {
            @Override
            public String name() {
                return topic.get("name").asText();
            }

            @Override
            public Uuid id() {
                return Uuid.fromString(topic.get("id").asText());
            }

            @Override
            public int partitionCount() {
                return topic.get("racks").size();
            }

            @Override
            public List<String> partitionRacks(int partition) {
                List<String> racks = new ArrayList<>();
                topic.get("racks").get(partition).forEach(rack -> racks.add(rack.asText()));
                return racks;
            }
        };
        return new CoordinatorMetadataImage() {
            @Override
            public Set<Uuid> topicIds() {
                return Set.of(metadata.id());
            }

            @Override
            public Set<String> topicNames() {
                return Set.of(metadata.name());
            }

            @Override
            public Optional<TopicMetadata> topicMetadata(String name) {
                return Optional.of(metadata);
            }

            @Override
            public Optional<TopicMetadata> topicMetadata(Uuid id) {
                return Optional.of(metadata);
            }

            @Override
            public CoordinatorMetadataDelta emptyDelta() {
                throw new UnsupportedOperationException();
            }

            @Override
            public long version() {
                return 0;
            }

            @Override
            public boolean isEmpty() {
                return false;
            }
        };
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
