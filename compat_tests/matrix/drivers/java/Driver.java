// The driver around Apache Kafka's own Java clients, as the matrix asks for it (compat_tests/matrix/README.md): a call a
// line on standard input, an answer a line on standard output. What differs between the versions of the clients is
// in newer/ThisVersion.java and older/ThisVersion.java, of which one is compiled.

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.utils.AppInfoParser;

public final class Driver {
    // A call: its arguments in, its result out.
    interface Handler {
        Object handle(Call call) throws Exception;
    }

    private final Map<String, Handler> handlers = new HashMap<>();

    private Driver() {
        on("version", call -> Map.of("library", "kafka-clients", "version", AppInfoParser.getVersion()));
        on("leader_epoch_end", call -> {
            throw new Failures.Unsupported("the Java clients ask for the end of an epoch only by themselves");
        });
    }

    void on(String call, Handler handler) {
        handlers.put(call, handler);
    }

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Driver driver = new Driver();
        try (AdminCalls admin = new AdminCalls(bootstrap);
                ProduceCalls produce = new ProduceCalls(bootstrap);
                ReadCalls read = new ReadCalls(bootstrap);
                MemberCalls members = new MemberCalls(bootstrap);
                TransactionCalls transactions = new TransactionCalls(bootstrap, members);
                ThisVersion thisVersion = new ThisVersion(bootstrap)) {
            admin.register(driver);
            new GroupCalls(admin.admin).register(driver);
            new InspectionCalls(admin.admin).register(driver);
            produce.register(driver);
            read.register(driver);
            members.register(driver);
            transactions.register(driver);
            thisVersion.register(driver, admin.admin);
            BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = calls.readLine(); line != null; line = calls.readLine()) {
                answers.println(Json.write(driver.answer(line)));
            }
        }
        System.exit(0);
    }

    private Map<String, Object> answer(String line) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            Call call = Call.of(Json.parse(line));
            Handler handler = handlers.get(call.text("call"));
            if (handler == null) {
                throw new Failures.Unsupported("no call " + call.text("call"));
            }
            answer.put("ok", handler.handle(call));
        } catch (Failures.Unsupported error) {
            answer.put("unsupported", error.getMessage());
        } catch (Exception error) {
            // Whatever it is, the next call is served.
            error.printStackTrace();
            answer.put("error", Failures.nameOf(error));
            answer.put("message", Failures.messageOf(error));
        }
        return answer;
    }
}
