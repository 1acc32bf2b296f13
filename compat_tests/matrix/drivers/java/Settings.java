// The settings that all clients of the driver have: no call may take longer than 30 seconds.

import java.util.HashMap;
import java.util.Map;

final class Settings {
    static final int PATIENCE_MS = 20_000;
    private static final String BYTES = "org.apache.kafka.common.serialization.ByteArray";

    private Settings() {
    }

    static Map<String, Object> admin(String bootstrap) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("default.api.timeout.ms", PATIENCE_MS);
        settings.put("request.timeout.ms", PATIENCE_MS - 5_000);
        settings.put("retry.backoff.ms", 50);
        settings.put("reconnect.backoff.ms", 50);
        return settings;
    }

    static Map<String, Object> producer(String bootstrap) {
        Map<String, Object> settings = admin(bootstrap);
        settings.remove("default.api.timeout.ms");
        settings.put("max.block.ms", 10_000);
        settings.put("delivery.timeout.ms", PATIENCE_MS);
        settings.put("linger.ms", 0);
        settings.put("key.serializer", BYTES + "Serializer");
        settings.put("value.serializer", BYTES + "Serializer");
        return settings;
    }

    static Map<String, Object> shareConsumer(String bootstrap) {
        Map<String, Object> settings = admin(bootstrap);
        settings.put("fetch.max.wait.ms", 200);
        settings.put("key.deserializer", BYTES + "Deserializer");
        settings.put("value.deserializer", BYTES + "Deserializer");
        return settings;
    }

    static Map<String, Object> consumer(String bootstrap) {
        Map<String, Object> settings = shareConsumer(bootstrap);
        settings.put("enable.auto.commit", false);
        settings.put("allow.auto.create.topics", false);
        return settings;
    }
}
