// What went wrong, by Kafka's name of the error code, or LOCAL where the client gave up by itself.
//
// An exception that stands for a code is of the code's class; those that wrap one carry it as a cause. The client throws
// some of these classes on its own account as well, and is then told by its words.

import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownServerException;
import org.apache.kafka.common.protocol.Errors;

final class Failures {
    static final String LOCAL = "LOCAL";

    private Failures() {
    }

    // The client has no such call.
    static final class Unsupported extends RuntimeException {
        Unsupported(String why) {
            super(why);
        }
    }

    // The client knows of an error of the broker, but has no exception for it.
    static final class Refused extends RuntimeException {
        final Errors error;

        Refused(Errors error, String message) {
            super(message);
            this.error = error;
        }
    }

    static String nameOf(Throwable thrown) {
        for (Throwable each = thrown; each != null; each = each.getCause()) {
            if (each instanceof Refused) {
                return ((Refused) each).error.name();
            }
            if (each instanceof org.apache.kafka.clients.consumer.OffsetOutOfRangeException) {
                return Errors.OFFSET_OUT_OF_RANGE.name();
            }
            if (each instanceof ExecutionException || each instanceof CompletionException) {
                continue;
            }
            Errors error = Errors.forException(each);
            boolean known = error != Errors.UNKNOWN_SERVER_ERROR || each instanceof UnknownServerException;
            if (known && !isOfTheClient(each)) {
                return error.name();
            }
        }
        return LOCAL;
    }

    static String messageOf(Throwable thrown) {
        StringBuilder words = new StringBuilder();
        for (Throwable each = thrown; each != null; each = each.getCause()) {
            words.append(words.length() == 0 ? "" : " <- ");
            words.append(each.getClass().getSimpleName()).append(": ").append(each.getMessage());
        }
        return words.toString();
    }

    private static boolean isOfTheClient(Throwable thrown) {
        String words = String.valueOf(thrown.getMessage());
        if (thrown instanceof TimeoutException) {
            return !words.equals(Errors.REQUEST_TIMED_OUT.message());
        }
        return thrown instanceof RecordTooLargeException && words.contains("max.request.size");
    }
}
