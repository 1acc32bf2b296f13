// A member of a share group that tells on standard output what it reads and what it is done with. Arguments are
// settings of the consumer as name=value, and topic=NAME. Some records it releases when they come for the first time.
// It leaves the group when its standard input ends.

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;

public class ShareMember {
    private static final int EVERY = 7;
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
        settings.put("share.acknowledgement.mode", "explicit");
        Thread watch = new Thread(ShareMember::waitForEnd);
        watch.setDaemon(true);
        watch.start();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (!stopping) {
                handle(consumer, consumer.poll(Duration.ofMillis(100)));
            }
        }
        say("left");
    }

    private static void handle(KafkaShareConsumer<byte[], byte[]> consumer, ConsumerRecords<byte[], byte[]> records) {
        long now = System.nanoTime();
        List<ConsumerRecord<byte[], byte[]>> accepted = new ArrayList<>();
        StringBuilder lines = new StringBuilder();
        for (ConsumerRecord<byte[], byte[]> each : records) {
            int count = each.deliveryCount().orElseThrow();
            lines.append(now).append(" read ").append(where(each)).append(' ').append(count).append('\n');
            if (count == 1 && each.offset() % EVERY == 0) {
                consumer.acknowledge(each, AcknowledgeType.RELEASE);
            } else {
                consumer.acknowledge(each, AcknowledgeType.ACCEPT);
                accepted.add(each);
            }
        }
        if (records.isEmpty()) {
            return;
        }
        System.out.print(lines);
        System.out.flush();
        Map<TopicIdPartition, Optional<KafkaException>> outcome = consumer.commitSync();
        lines.setLength(0);
        now = System.nanoTime();
        for (ConsumerRecord<byte[], byte[]> each : accepted) {
            boolean failed = outcome.entrySet().stream().anyMatch(entry ->
                entry.getKey().partition() == each.partition() && entry.getValue().isPresent());
            lines.append(now).append(failed ? " failed " : " accepted ").append(where(each)).append(" 0\n");
        }
        System.out.print(lines);
        System.out.flush();
    }

    private static String where(ConsumerRecord<byte[], byte[]> each) {
        return each.partition() + " " + each.offset();
    }

    private static void say(String word) {
        System.out.println(System.nanoTime() + " " + word);
    }

    private static void waitForEnd() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (IOException error) {
            // The same as the end.
        }
        stopping = true;
    }
}
