// Producing without transactions; a producer is kept for each combination of settings that was asked for.

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

final class ProduceCalls implements AutoCloseable {
    private final String bootstrap;
    private final Map<Map<String, Object>, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    ProduceCalls(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    void register(Driver driver) {
        driver.on("produce", this::produce);
    }

    @Override
    public void close() {
        producers.values().forEach(each -> each.close(Duration.ofSeconds(1)));
    }

    private KafkaProducer<byte[], byte[]> producer(Call call) {
        Map<String, Object> settings = Settings.producer(bootstrap);
        settings.put("acks", call.has("acks") ? String.valueOf(call.integer("acks")) : "-1");
        settings.put("compression.type", call.has("codec") ? call.text("codec") : "none");
        settings.put("enable.idempotence", call.flag("idempotent"));
        if (call.has("max_request_bytes")) {
            settings.put("max.request.size", call.integer("max_request_bytes"));
        }
        return producers.computeIfAbsent(settings, KafkaProducer::new);
    }

    private Object produce(Call call) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(call);
        List<Object> answers = new ArrayList<>();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (Call each : call.calls("records")) {
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                call.text("topic"), each.has("partition") ? each.integer("partition") : null,
                each.has("timestamp") ? each.number("timestamp") : null, each.bytes("key"), each.bytes("value"));
            for (Object header : each.list("headers")) {
                List<?> pair = (List<?>) header;
                record.headers().add((String) pair.get(0), Call.decoded(pair.get(1)));
            }
            sent.add(producer.send(record));
        }
        producer.flush();
        for (Future<RecordMetadata> each : sent) {
            answers.add(answer(each));
        }
        return answers;
    }

    private static Object answer(Future<RecordMetadata> sent) throws InterruptedException {
        try {
            RecordMetadata stored = sent.get();
            return Map.of("partition", stored.partition(), "offset", stored.hasOffset() ? stored.offset() : -1L);
        } catch (ExecutionException error) {
            return Map.of("error", Failures.nameOf(error));
        }
    }
}
