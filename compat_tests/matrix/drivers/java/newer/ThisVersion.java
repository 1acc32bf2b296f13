// What the clients of Kafka 4 have and those of 3 have not, or have otherwise: all kinds of groups in one list, share
// groups, and patterns that the broker matches.

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.clients.admin.ShareMemberDescription;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.KafkaException;

final class ThisVersion implements AutoCloseable {
    private static final int POLL_MS = 100;

    private static final class ShareMember {
        final KafkaShareConsumer<byte[], byte[]> consumer;
        final boolean explicit;
        final Map<String, ConsumerRecord<byte[], byte[]>> polled = new HashMap<>();

        ShareMember(KafkaShareConsumer<byte[], byte[]> consumer, boolean explicit) {
            this.consumer = consumer;
            this.explicit = explicit;
        }
    }

    private final String bootstrap;
    private final Map<String, ShareMember> members = new HashMap<>();

    ThisVersion(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    void register(Driver driver, Admin admin) {
        driver.on("list_groups", call -> listGroups(admin));
        driver.on("describe_group", call -> describeGroup(admin, call.text("group")));
        driver.on("share_join", this::join);
        driver.on("share_poll", this::poll);
        driver.on("share_acknowledge", this::acknowledge);
        driver.on("share_leave", call -> {
            ShareMember leaving = members.remove(call.text("as"));
            if (leaving != null) {
                leaving.consumer.close(Duration.ofSeconds(10));
            }
            return null;
        });
    }

    @Override
    public void close() {
        members.values().forEach(each -> each.consumer.close(Duration.ofSeconds(1)));
    }

    static void subscribe(KafkaConsumer<byte[], byte[]> consumer, String pattern, boolean newProtocol) {
        if (newProtocol) {
            consumer.subscribe(new SubscriptionPattern(pattern));
        } else {
            consumer.subscribe(Pattern.compile(pattern));
        }
    }

    private static Object listGroups(Admin admin) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        for (GroupListing each : admin.listGroups().all().get()) {
            Map<String, Object> row = new TreeMap<>();
            row.put("state", each.groupState().map(Object::toString).orElse(null));
            row.put("type", each.type().map(type -> type.toString().toLowerCase(Locale.ROOT)).orElse(null));
            found.put(each.groupId(), row);
        }
        return found;
    }

    private static Object describeGroup(Admin admin, String group) throws Exception {
        for (GroupListing each : admin.listGroups().all().get()) {
            if (each.groupId().equals(group) && each.type().equals(Optional.of(GroupType.SHARE))) {
                return describeShareGroup(admin, group);
            }
        }
        ConsumerGroupDescription described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        Map<String, Object> found = new TreeMap<>();
        found.put("state", described.groupState().toString());
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

    private static Object describeShareGroup(Admin admin, String group) throws Exception {
        ShareGroupDescription described = admin.describeShareGroups(List.of(group)).all().get().get(group);
        Map<String, Object> found = new TreeMap<>();
        found.put("state", described.groupState().toString());
        found.put("type", "share");
        found.put("protocol", "share");
        List<Object> rows = new ArrayList<>();
        for (ShareMemberDescription each : described.members()) {
            Map<String, Object> row = new TreeMap<>();
            row.put("client_id", each.clientId());
            row.put("instance_id", null);
            row.put("assignment", GroupCalls.assignmentOf(each.assignment().topicPartitions()));
            rows.add(row);
        }
        found.put("members", rows);
        return found;
    }

    private ShareMember member(Call call) {
        ShareMember found = members.get(call.text("as"));
        if (found == null) {
            throw new IllegalStateException("no share member is called " + call.text("as"));
        }
        return found;
    }

    private Object join(Call call) {
        Map<String, Object> settings = Settings.shareConsumer(bootstrap);
        settings.put("group.id", call.text("group"));
        settings.put("share.acknowledgement.mode", call.text("mode"));
        KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings);
        consumer.subscribe(call.texts("topics"));
        ShareMember before = members.put(
            call.text("as"), new ShareMember(consumer, "explicit".equals(call.text("mode"))));
        if (before != null) {
            before.consumer.close(Duration.ofSeconds(1));
        }
        return null;
    }

    private static String key(Object topic, Object partition, Object offset) {
        return topic + "/" + partition + "/" + offset;
    }

    private Object poll(Call call) {
        ShareMember member = member(call);
        long deadline = System.currentTimeMillis() + call.number("wait_ms");
        ConsumerRecords<byte[], byte[]> records;
        do {
            long left = Math.max(0, deadline - System.currentTimeMillis());
            records = member.consumer.poll(Duration.ofMillis(Math.min(POLL_MS, left)));
        } while (records.isEmpty() && System.currentTimeMillis() < deadline);
        List<Object> rows = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> each : records) {
            member.polled.put(key(each.topic(), each.partition(), each.offset()), each);
            Map<String, Object> row = new TreeMap<>();
            row.put("topic", each.topic());
            row.put("partition", each.partition());
            row.put("offset", each.offset());
            row.put("value", Call.encoded(each.value()));
            row.put("deliveries", each.deliveryCount().orElse(null));
            rows.add(row);
        }
        return rows;
    }

    private Object acknowledge(Call call) {
        ShareMember member = member(call);
        for (Call each : call.calls("records")) {
            AcknowledgeType kind = AcknowledgeType.valueOf(each.text("kind").toUpperCase(Locale.ROOT));
            if (member.explicit) {
                String key = key(each.text("topic"), each.number("partition"), each.number("offset"));
                member.consumer.acknowledge(member.polled.get(key), kind);
            } else if (kind != AcknowledgeType.ACCEPT) {
                throw new Failures.Unsupported("without explicit acknowledgements everything is accepted");
            }
        }
        for (Optional<KafkaException> each : member.consumer.commitSync().values()) {
            if (each.isPresent()) {
                throw each.get();
            }
        }
        return null;
    }
}
