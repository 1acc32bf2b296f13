// Kafka Streams with exactly_once_v2: joins a stream with a table, or with another stream within ten seconds of each
// other, and writes LEFT+RIGHT. Arguments are settings of Streams as name=value, join=table or join=stream, left=TOPIC,
// right=TOPIC and target=TOPIC. It goes on until it is killed.

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.state.Stores;

public class StreamsJoin {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        String join = (String) settings.remove("join");
        String left = (String) settings.remove("left");
        String right = (String) settings.remove("right");
        String target = (String) settings.remove("target");
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> strings = Consumed.with(Serdes.String(), Serdes.String());
        KStream<String, String> stream = builder.stream(left, strings);
        KStream<String, String> joined;
        if (join.equals("table")) {
            joined = stream.join(
                builder.table(right, strings, Materialized.<String, String>as(Stores.inMemoryKeyValueStore("table"))
                    .withKeySerde(Serdes.String()).withValueSerde(Serdes.String())),
                (one, other) -> one + "+" + other,
                Joined.with(Serdes.String(), Serdes.String(), Serdes.String()));
        } else {
            Duration window = Duration.ofSeconds(10);
            joined = stream.join(
                builder.stream(right, strings),
                (one, other) -> one + "+" + other,
                JoinWindows.ofTimeDifferenceAndGrace(window, Duration.ofHours(1)),
                StreamJoined.<String, String, String>with(
                    store("one", window), store("other", window))
                    .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()).withOtherValueSerde(Serdes.String()));
        }
        joined.to(target, Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler
                .StreamThreadExceptionResponse.SHUTDOWN_APPLICATION;
        });
        streams.start();
    }

    private static org.apache.kafka.streams.state.WindowBytesStoreSupplier store(String name, Duration window) {
        Duration size = window.multipliedBy(2);
        return Stores.inMemoryWindowStore(name, size.plus(Duration.ofHours(1)), size, true);
    }
}
