// Transactional producers, each under a name that the caller gave it.

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

final class TransactionCalls implements AutoCloseable {
    private final String bootstrap;
    private final MemberCalls members;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    TransactionCalls(String bootstrap, MemberCalls members) {
        this.bootstrap = bootstrap;
        this.members = members;
    }

    void register(Driver driver) {
        driver.on("txn_init", this::init);
        driver.on("txn_begin", call -> {
            producer(call).beginTransaction();
            return null;
        });
        driver.on("txn_commit", call -> {
            producer(call).commitTransaction();
            return null;
        });
        driver.on("txn_abort", call -> {
            producer(call).abortTransaction();
            return null;
        });
        driver.on("txn_send", this::send);
        driver.on("txn_offsets", this::sendOffsets);
        driver.on("txn_close", call -> {
            KafkaProducer<byte[], byte[]> closing = producers.remove(call.text("as"));
            if (closing != null) {
                closing.close(Duration.ofSeconds(10));
            }
            return null;
        });
    }

    @Override
    public void close() {
        producers.values().forEach(each -> each.close(Duration.ofSeconds(1)));
    }

    private KafkaProducer<byte[], byte[]> producer(Call call) {
        KafkaProducer<byte[], byte[]> found = producers.get(call.text("as"));
        if (found == null) {
            throw new IllegalStateException("no producer is called " + call.text("as"));
        }
        return found;
    }

    private Object init(Call call) {
        Map<String, Object> settings = Settings.producer(bootstrap);
        settings.put("max.block.ms", Settings.PATIENCE_MS);
        settings.put("transactional.id", call.text("id"));
        if (call.has("timeout_ms")) {
            settings.put("transaction.timeout.ms", call.integer("timeout_ms"));
        }
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings);
        KafkaProducer<byte[], byte[]> before = producers.put(call.text("as"), producer);
        if (before != null) {
            before.close(Duration.ofSeconds(1));
        }
        producer.initTransactions();
        return null;
    }

    private Object send(Call call) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(call);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (Object each : call.list("values")) {
            sent.add(producer.send(
                new ProducerRecord<>(call.text("topic"), call.integer("partition"), null, Call.decoded(each))));
        }
        producer.flush();
        List<Object> offsets = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            offsets.add(each.get().offset());
        }
        return offsets;
    }

    private Object sendOffsets(Call call) {
        ConsumerGroupMetadata group = call.has("member")
            ? members.metadataOf(call.text("member")) : new ConsumerGroupMetadata(call.text("group"));
        producer(call).sendOffsetsToTransaction(call.offsets("offsets"), group);
        return null;
    }
}
