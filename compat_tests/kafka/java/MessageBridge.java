// Reads and writes messages with Kafka's own classes, one command a line, for as long as stdin is open.
//
//   write <class> <version> <json>    ->  ok <hex>
//   read  <class> <version> <hex>     ->  ok <json> <hex of the message written again> <bytes left over>
//   errors                            ->  ok <json: [{code, name, retriable}]>
//
// Words are separated by tabs. <class> is the full name of a generated message class; its JsonConverter must lie beside it.
// What goes wrong inside Kafka is answered with "error <exception>".

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

public class MessageBridge {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final Map<String, Converter> CONVERTERS = new HashMap<>();

    private record Converter(Class<?> message, Method read, Method write) {
        static Converter of(String name) throws ReflectiveOperationException {
            Class<?> message = Class.forName(name);
            Class<?> converter = Class.forName(name + "JsonConverter");
            return new Converter(
                message,
                converter.getMethod("read", JsonNode.class, short.class),
                converter.getMethod("write", message, short.class));
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = "ok\t" + answer(line.split("\t", -1));
            } catch (InvocationTargetException e) {
                answer = "error\t" + oneLine(e.getCause());
            } catch (Throwable e) {
                answer = "error\t" + oneLine(e);
            }
            out.print(answer + "\n");
            out.flush();
        }
    }

    private static String answer(String[] words) throws Exception {
        if (words[0].equals("errors")) {
            return errors();
        }
        Converter converter = CONVERTERS.get(words[1]);
        if (converter == null) {
            converter = Converter.of(words[1]);
            CONVERTERS.put(words[1], converter);
        }
        short version = Short.parseShort(words[2]);
        if (words[0].equals("write")) {
            Message message = (Message) converter.read().invoke(null, JSON.readTree(words[3]), version);
            return HEX.formatHex(bytes(message, version));
        }
        ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(words[3]));
        Message message = (Message) converter.message().getConstructor().newInstance();
        message.read(new ByteBufferAccessor(buffer), version);
        JsonNode json = (JsonNode) converter.write().invoke(null, message, version);
        String again = HEX.formatHex(bytes(message, version));
        return JSON.writeValueAsString(json) + "\t" + again + "\t" + buffer.remaining();
    }

    private static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    private static String errors() throws Exception {
        ArrayNode all = JSON.createArrayNode();
        for (Errors error : Errors.values()) {
            ObjectNode node = all.addObject();
            node.put("code", error.code());
            node.put("name", error.name());
            node.put("retriable", error.exception() instanceof RetriableException);
        }
        return JSON.writeValueAsString(all);
    }

    private static String oneLine(Throwable e) {
        return String.valueOf(e).replaceAll("\\s+", " ");
    }
}
