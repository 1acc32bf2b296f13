// The arguments of one call, each taken out as what it is.

import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

final class Call {
    private final Map<String, Object> arguments;

    Call(Map<String, Object> arguments) {
        this.arguments = arguments;
    }

    @SuppressWarnings("unchecked")
    static Call of(Object arguments) {
        return new Call((Map<String, Object>) arguments);
    }

    boolean has(String name) {
        return arguments.get(name) != null;
    }

    String text(String name) {
        return (String) arguments.get(name);
    }

    int integer(String name) {
        return (int) number(name);
    }

    long number(String name) {
        return (Long) arguments.get(name);
    }

    boolean flag(String name) {
        return Boolean.TRUE.equals(arguments.get(name));
    }

    Object any(String name) {
        return arguments.get(name);
    }

    byte[] bytes(String name) {
        return decoded(arguments.get(name));
    }

    List<String> texts(String name) {
        List<String> found = new ArrayList<>();
        list(name).forEach(each -> found.add((String) each));
        return found;
    }

    List<Integer> integers(String name) {
        List<Integer> found = new ArrayList<>();
        list(name).forEach(each -> found.add(((Long) each).intValue()));
        return found;
    }

    List<Call> calls(String name) {
        List<Call> found = new ArrayList<>();
        list(name).forEach(each -> found.add(of(each)));
        return found;
    }

    Map<String, String> textByText(String name) {
        Map<String, String> found = new LinkedHashMap<>();
        map(name).forEach((key, value) -> found.put(key, (String) value));
        return found;
    }

    // {topic: {partition: offset}}
    Map<TopicPartition, OffsetAndMetadata> offsets(String name) {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        map(name).forEach((topic, partitions) -> ((Map<?, ?>) partitions).forEach((partition, offset) ->
            found.put(new TopicPartition(topic, Integer.parseInt((String) partition)),
                new OffsetAndMetadata((Long) offset))));
        return found;
    }

    @SuppressWarnings("unchecked")
    List<Object> list(String name) {
        Object found = arguments.get(name);
        return found == null ? List.of() : (List<Object>) found;
    }

    @SuppressWarnings("unchecked")
    Map<String, Object> map(String name) {
        Object found = arguments.get(name);
        return found == null ? Map.of() : (Map<String, Object>) found;
    }

    static byte[] decoded(Object base64) {
        return base64 == null ? null : Base64.getDecoder().decode((String) base64);
    }

    static String encoded(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}
