// The clients of Kafka 3 know consumer groups only, and match patterns themselves.

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;

final class ThisVersion implements AutoCloseable {
    ThisVersion(String bootstrap) {
    }

    void register(Driver driver, Admin admin) {
        driver.on("list_groups", call -> listGroups(admin));
        driver.on("describe_group", call -> describeGroup(admin, call.text("group")));
        for (String each : List.of("share_join", "share_poll", "share_acknowledge", "share_leave")) {
            driver.on(each, call -> {
                throw new Failures.Unsupported("no share groups before 4.0");
            });
        }
    }

    @Override
    public void close() {
        // Nothing is kept open.
    }

    static void subscribe(KafkaConsumer<byte[], byte[]> consumer, String pattern, boolean newProtocol) {
        consumer.subscribe(Pattern.compile(pattern));
    }

    private static Object listGroups(Admin admin) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        for (ConsumerGroupListing each : admin.listConsumerGroups().all().get()) {
            Map<String, Object> row = new TreeMap<>();
            row.put("state", each.state().map(Object::toString).orElse(null));
            row.put("type", each.type().map(type -> type.toString().toLowerCase(Locale.ROOT)).orElse(null));
            found.put(each.groupId(), row);
        }
        return found;
    }

    private static Object describeGroup(Admin admin, String group) throws Exception {
        ConsumerGroupDescription described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        Map<String, Object> found = new TreeMap<>();
        found.put("state", described.state().toString());
        found.put("type", described.type().toString().toLowerCase(Locale.ROOT));
        found.put("protocol", described.partitionAssignor());
        List<Object> rows = new ArrayList<>();
        for (MemberDescription each : described.members()) {
            Map<String, Object> row = new TreeMap<>();
            row.put("client_id", each.clientId());
            row.put("instance_id", each.groupInstanceId().orElse(null));
            row.put("assignment", GroupCalls.assignmentOf(each.assignment().topicPartitions()));
            rows.add(row);
        }
        found.put("members", rows);
        return found;
    }
}
