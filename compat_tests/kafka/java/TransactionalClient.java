// A transactional client that is told what to do on its standard input; the lines are those of
// compat_tests/transactional. Arguments are settings of the producer as name=value.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class TransactionalClient {
    private static volatile boolean stopping = false;
    private final String bootstrap;
    private final KafkaProducer<String, String> producer;
    private KafkaConsumer<String, String> consumer;

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        TransactionalClient client = new TransactionalClient(settings);
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] words = line.split(" ");
            boolean copies = words[0].equals("copy");
            try {
                if (copies) {
                    Thread watch = new Thread(() -> waitForEnd(orders));
                    watch.setDaemon(true);
                    watch.start();
                    client.copy(words[1], words[2], Integer.parseInt(words[3]), words[4],
                        Integer.parseInt(words[5]), words[6]);
                    break;
                }
                say("ok" + client.answer(words));
            } catch (KafkaException error) {
                Throwable inner = error.getClass() == KafkaException.class && error.getCause() != null
                    ? error.getCause() : error;
                String words_ = inner.getClass().getSimpleName() + " " + error.getMessage();
                say((copies ? "failed " : "error ") + words_.replace('\n', ' '));
                if (copies) {
                    break;
                }
            }
        }
        System.exit(0);
    }

    private TransactionalClient(Properties settings) {
        bootstrap = settings.getProperty("bootstrap.servers");
        settings.putIfAbsent("retry.backoff.ms", "20");
        producer = settings.containsKey("transactional.id")
            ? new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer()) : null;
    }

    private String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "init":
                producer.initTransactions();
                return "";
            case "begin":
                producer.beginTransaction();
                return "";
            case "commit":
                producer.commitTransaction();
                return "";
            case "abort":
                producer.abortTransaction();
                return "";
            case "send":
                int partition = Integer.parseInt(words[2]);
                List<ProducerRecord<String, String>> records = new ArrayList<>();
                for (String value : Arrays.asList(words).subList(3, words.length)) {
                    records.add(new ProducerRecord<>(words[1], partition, null, value));
                }
                return send(records).stream().map(offset -> " " + offset).collect(Collectors.joining());
            case "offsets":
                try (KafkaConsumer<String, String> member = consumer(words[1], "read_committed", 1)) {
                    producer.sendOffsetsToTransaction(
                        Map.of(new TopicPartition(words[2], Integer.parseInt(words[3])),
                            new OffsetAndMetadata(Long.parseLong(words[4]))),
                        member.groupMetadata());
                }
                return "";
            case "read":
                return read(new TopicPartition(words[1], Integer.parseInt(words[2])), words[3]);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private List<Long> send(List<ProducerRecord<String, String>> records) throws Exception {
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        for (ProducerRecord<String, String> each : records) {
            futures.add(producer.send(each));
        }
        producer.flush();
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> each : futures) {
            try {
                offsets.add(each.get().offset());
            } catch (ExecutionException error) {
                throw error.getCause() instanceof KafkaException ? (KafkaException) error.getCause() : error;
            }
        }
        return offsets;
    }

    private String read(TopicPartition place, String isolation) {
        StringBuilder found = new StringBuilder();
        try (KafkaConsumer<String, String> reader = consumer("unused", isolation, 500)) {
            reader.assign(List.of(place));
            long end = reader.endOffsets(List.of(place)).get(place);
            reader.seek(place, 0);
            while (reader.position(place) < end) {
                for (ConsumerRecord<String, String> each : reader.poll(Duration.ofMillis(100))) {
                    found.append(' ').append(each.offset()).append(':').append(each.value());
                }
            }
        }
        return found.toString();
    }

    private void copy(String source, String target, int partitions, String group, int batch, String way)
            throws Exception {
        producer.initTransactions();
        consumer = consumer(group, "read_committed", batch);
        if (way.equals("subscribe")) {
            consumer.subscribe(List.of(source));
        } else {
            List<TopicPartition> all = new ArrayList<>();
            for (int partition = 0; partition < partitions; partition++) {
                all.add(new TopicPartition(source, partition));
            }
            consumer.assign(all);
        }
        while (!stopping) {
            Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
            List<ProducerRecord<String, String>> copies = new ArrayList<>();
            for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(100))) {
                next.put(new TopicPartition(source, each.partition()), new OffsetAndMetadata(each.offset() + 1));
                int to = (int) ((each.partition() + each.offset()) % partitions);
                copies.add(new ProducerRecord<>(target, to, null, each.value()));
            }
            if (copies.isEmpty()) {
                continue;
            }
            producer.beginTransaction();
            say("trying " + next.entrySet().stream()
                .map(each -> each.getKey().partition() + ":" + each.getValue().offset())
                .collect(Collectors.joining(","))
                + " " + copies.stream().map(each -> each.partition() + ":" + each.value())
                .collect(Collectors.joining(",")));
            send(copies);
            producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
            producer.commitTransaction();
            say("committed");
        }
        say("left");
    }

    private KafkaConsumer<String, String> consumer(String group, String isolation, int batch) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("isolation.level", isolation);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("max.poll.records", String.valueOf(batch));
        settings.put("fetch.max.wait.ms", "50");
        settings.put("session.timeout.ms", "3000");
        settings.put("heartbeat.interval.ms", "300");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private static void waitForEnd(BufferedReader orders) {
        try {
            while (orders.readLine() != null) {
            }
        } catch (java.io.IOException error) {
            // The end of the input, too.
        }
        stopping = true;
    }

    private static void say(String words) {
        System.out.println(words);
        System.out.flush();
    }
}
