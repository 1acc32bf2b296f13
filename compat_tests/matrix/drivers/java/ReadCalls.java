// Reading one partition by assignment, without a group.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;

final class ReadCalls implements AutoCloseable {
    private final String bootstrap;

    ReadCalls(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    void register(Driver driver) {
        driver.on("fetch", this::fetch);
    }

    @Override
    public void close() {
        // Each call has had a consumer of its own.
    }

    private Object fetch(Call call) {
        Map<String, Object> settings = Settings.consumer(bootstrap);
        settings.put("auto.offset.reset", "none");
        settings.put("isolation.level", call.has("isolation") ? call.text("isolation") : "read_uncommitted");
        TopicPartition partition = new TopicPartition(call.text("topic"), call.integer("partition"));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            List<PartitionInfo> known = consumer.partitionsFor(partition.topic());
            if (known == null || known.stream().noneMatch(each -> each.partition() == partition.partition())) {
                throw new Failures.Refused(Errors.UNKNOWN_TOPIC_OR_PARTITION, "the client knows no " + partition);
            }
            consumer.assign(List.of(partition));
            consumer.seek(partition, call.number("offset"));
            long end = call.has("count") ? Long.MAX_VALUE : consumer.endOffsets(List.of(partition)).get(partition);
            long count = call.has("count") ? call.number("count") : Long.MAX_VALUE;
            return read(consumer, partition, count, end);
        }
    }

    private static List<Object> read(
            KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, long count, long end) {
        List<Object> found = new ArrayList<>();
        long deadline = System.currentTimeMillis() + Settings.PATIENCE_MS;
        while (found.size() < count && consumer.position(partition) < end) {
            if (System.currentTimeMillis() > deadline) {
                throw new TimeoutException("after " + found.size() + " records at " + consumer.position(partition));
            }
            for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(200)).records(partition)) {
                if (found.size() < count && each.offset() < end) {
                    found.add(row(each));
                }
            }
        }
        // An offset behind the end shows only when it is asked for; before the last stable one it is in order.
        for (int round = 0; round < 10 && found.isEmpty() && consumer.position(partition) > end; round++) {
            consumer.poll(Duration.ofMillis(200));
        }
        return found;
    }

    private static Map<String, Object> row(ConsumerRecord<byte[], byte[]> record) {
        List<Object> headers = new ArrayList<>();
        for (Header each : record.headers()) {
            List<Object> pair = new ArrayList<>();
            pair.add(each.key());
            pair.add(Call.encoded(each.value()));
            headers.add(pair);
        }
        Map<String, Object> row = new TreeMap<>();
        row.put("offset", record.offset());
        row.put("key", Call.encoded(record.key()));
        row.put("value", Call.encoded(record.value()));
        row.put("headers", headers);
        row.put("timestamp", record.timestamp());
        return row;
    }
}
