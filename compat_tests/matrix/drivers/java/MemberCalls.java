// Members of consumer groups, of either protocol, each under a name that the caller gave it.

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

final class MemberCalls implements AutoCloseable {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "RangeAssignor", "roundrobin", "RoundRobinAssignor", "sticky", "StickyAssignor",
        "cooperative-sticky", "CooperativeStickyAssignor");
    private static final int POLL_MS = 100;

    private static final class Member {
        final KafkaConsumer<byte[], byte[]> consumer;
        final Map<TopicPartition, OffsetAndMetadata> polled = new HashMap<>();
        ConsumerRecords<byte[], byte[]> held;

        Member(KafkaConsumer<byte[], byte[]> consumer) {
            this.consumer = consumer;
        }
    }

    private final String bootstrap;
    private final Map<String, Member> members = new HashMap<>();

    MemberCalls(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    void register(Driver driver) {
        driver.on("join", this::join);
        driver.on("poll", this::poll);
        driver.on("commit", this::commit);
        driver.on("leave", call -> {
            Member leaving = members.remove(call.text("as"));
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

    ConsumerGroupMetadata metadataOf(String name) {
        return member(name).consumer.groupMetadata();
    }

    private Member member(String name) {
        Member found = members.get(name);
        if (found == null) {
            throw new IllegalStateException("no member is called " + name);
        }
        return found;
    }

    private Object join(Call call) {
        Map<String, Object> settings = Settings.consumer(bootstrap);
        settings.put("group.id", call.text("group"));
        settings.put("auto.offset.reset", "earliest");
        settings.put("metadata.max.age.ms", 1_000);
        if (call.has("isolation")) {
            settings.put("isolation.level", call.text("isolation"));
        }
        if (call.has("instance_id")) {
            settings.put("group.instance.id", call.text("instance_id"));
        }
        boolean newProtocol = "consumer".equals(call.text("protocol"));
        if (newProtocol) {
            settings.put("group.protocol", "consumer");
            if (call.has("remote_assignor")) {
                settings.put("group.remote.assignor", call.text("remote_assignor"));
            }
        } else {
            settings.put("heartbeat.interval.ms", 300);
            if (call.has("session_ms")) {
                settings.put("session.timeout.ms", call.integer("session_ms"));
            }
            if (call.has("assignor")) {
                settings.put("partition.assignment.strategy",
                    "org.apache.kafka.clients.consumer." + ASSIGNORS.get(call.text("assignor")));
            }
        }
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
        if (call.has("pattern")) {
            ThisVersion.subscribe(consumer, call.text("pattern"), newProtocol);
        } else {
            consumer.subscribe(call.texts("topics"));
        }
        Member joined = new Member(consumer);
        Member before = members.put(call.text("as"), joined);
        if (before != null) {
            before.consumer.close(Duration.ofSeconds(1));
        }
        // Only a poll begins to join; should it bring records already, the next one tells of them.
        joined.held = consumer.poll(Duration.ZERO);
        return null;
    }

    private Object poll(Call call) {
        Member member = member(call.text("as"));
        long deadline = System.currentTimeMillis() + call.number("wait_ms");
        ConsumerRecords<byte[], byte[]> records = member.held;
        member.held = ConsumerRecords.empty();
        while (records.isEmpty()) {
            long left = deadline - System.currentTimeMillis();
            records = member.consumer.poll(Duration.ofMillis(Math.max(0, Math.min(POLL_MS, left))));
            if (left <= 0) {
                break;
            }
        }
        List<Object> rows = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> each : records) {
            Map<String, Object> row = new TreeMap<>();
            row.put("topic", each.topic());
            row.put("partition", each.partition());
            row.put("offset", each.offset());
            row.put("key", Call.encoded(each.key()));
            row.put("value", Call.encoded(each.value()));
            rows.add(row);
            member.polled.put(
                new TopicPartition(each.topic(), each.partition()), new OffsetAndMetadata(each.offset() + 1));
        }
        return Map.of("assignment", GroupCalls.assignmentOf(member.consumer.assignment()), "records", rows);
    }

    private Object commit(Call call) {
        Member member = member(call.text("as"));
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>(member.polled);
        if (call.has("offsets")) {
            offsets = call.offsets("offsets");
        } else {
            offsets.keySet().retainAll(member.consumer.assignment());
        }
        member.consumer.commitSync(offsets);
        return null;
    }
}
