// A member of a consumer group that tells on standard output what happens to it; the lines are those of
// compat_tests/group_members. Arguments are settings of the consumer as name=value, and topic=NAME.
// It leaves the group when its standard input ends.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

public class GroupMember {
    private static volatile boolean stopping = false;

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        String topic = (String) settings.remove("topic");
        String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        settings.put("key.deserializer", bytes);
        settings.put("value.deserializer", bytes);
        Thread watch = new Thread(GroupMember::waitForEnd);
        watch.setDaemon(true);
        watch.start();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            Set<Integer> owned = new TreeSet<>();
            while (!stopping) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                long now = System.nanoTime();
                Set<Integer> current = new TreeSet<>();
                consumer.assignment().forEach(each -> current.add(each.partition()));
                if (!current.equals(owned)) {
                    owned = current;
                    say(now, "owns", current.toString().replaceAll("[\\[\\] ]", ""));
                }
                if (!records.isEmpty()) {
                    commit(consumer, tell(records, now));
                }
            }
        }
        say(System.nanoTime(), "left", "");
    }

    private static Map<TopicPartition, OffsetAndMetadata> tell(ConsumerRecords<byte[], byte[]> records, long now) {
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        for (TopicPartition partition : records.partitions()) {
            long first = -1;
            long expected = -1;
            for (ConsumerRecord<byte[], byte[]> each : records.records(partition)) {
                if (each.offset() != expected) {
                    if (first >= 0) {
                        say(now, "read", partition.partition() + " " + first + " " + expected);
                    }
                    first = each.offset();
                }
                expected = each.offset() + 1;
            }
            say(now, "read", partition.partition() + " " + first + " " + expected);
            next.put(partition, new OffsetAndMetadata(expected));
        }
        return next;
    }

    private static void commit(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, OffsetAndMetadata> next) {
        try {
            consumer.commitSync(next);
        } catch (KafkaException error) {
            say(System.nanoTime(), "failed", error.getClass().getSimpleName());
            return;
        }
        long now = System.nanoTime();
        next.forEach((partition, offset) ->
            say(now, "committed", partition.partition() + " " + offset.offset()));
    }

    private static void say(long nanos, String kind, String words) {
        System.out.println(nanos + " " + kind + " " + words);
        System.out.flush();
    }

    private static void waitForEnd() {
        try {
            while (System.in.read() >= 0) {
            }
        } catch (java.io.IOException error) {
            // The end of the input, too.
        }
        stopping = true;
    }
}
