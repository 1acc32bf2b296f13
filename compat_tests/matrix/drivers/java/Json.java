// JSON, as little of it as the driver needs: objects are maps, arrays lists, numbers Long, and nothing is left out when
// written. A parser of its own, because the clients' jars alone bring none.

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

final class Json {
    private final String text;
    private int at = 0;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.skipSpace();
        if (json.at != text.length()) {
            throw json.wrong("something behind the value");
        }
        return value;
    }

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private Object value() {
        skipSpace();
        if (at == text.length()) {
            throw wrong("no value");
        }
        switch (text.charAt(at)) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> found = new LinkedHashMap<>();
        at++;
        skipSpace();
        if (taken('}')) {
            return found;
        }
        do {
            skipSpace();
            String name = string();
            skipSpace();
            need(':');
            found.put(name, value());
            skipSpace();
        } while (taken(','));
        need('}');
        return found;
    }

    private List<Object> array() {
        List<Object> found = new ArrayList<>();
        at++;
        skipSpace();
        if (taken(']')) {
            return found;
        }
        do {
            found.add(value());
            skipSpace();
        } while (taken(','));
        need(']');
        return found;
    }

    private String string() {
        need('"');
        StringBuilder found = new StringBuilder();
        while (at < text.length()) {
            char next = text.charAt(at++);
            if (next == '"') {
                return found.toString();
            }
            found.append(next == '\\' ? escaped() : next);
        }
        throw wrong("a string without an end");
    }

    private char escaped() {
        char kind = text.charAt(at++);
        switch (kind) {
            case 'n':
                return '\n';
            case 't':
                return '\t';
            case 'r':
                return '\r';
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'u':
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 4, at), 16);
            default:
                return kind;
        }
    }

    private Long number() {
        int start = at;
        while (at < text.length() && "-0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        if (start == at) {
            throw wrong("no value");
        }
        return Long.valueOf(text.substring(start, at));
    }

    private Object word(String word, Object meaning) {
        if (!text.startsWith(word, at)) {
            throw wrong("not a word of JSON");
        }
        at += word.length();
        return meaning;
    }

    private boolean taken(char wanted) {
        if (at < text.length() && text.charAt(at) == wanted) {
            at++;
            return true;
        }
        return false;
    }

    private void need(char wanted) {
        if (!taken(wanted)) {
            throw wrong("'" + wanted + "' is missing");
        }
    }

    private void skipSpace() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
    }

    private IllegalArgumentException wrong(String what) {
        return new IllegalArgumentException(what + " at character " + at);
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map) {
            String before = "{";
            for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
                out.append(before);
                writeString(each.getKey().toString(), out);
                out.append(':');
                write(each.getValue(), out);
                before = ",";
            }
            out.append(((Map<?, ?>) value).isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable) {
            String before = "";
            out.append('[');
            for (Object each : (Iterable<?>) value) {
                out.append(before);
                write(each, out);
                before = ",";
            }
            out.append(']');
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else {
            writeString(value.toString(), out);
        }
    }

    private static void writeString(String value, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            char each = value.charAt(i);
            if (each == '"' || each == '\\') {
                out.append('\\').append(each);
            } else if (each < ' ' || each > '~') {
                out.append(String.format("\\u%04x", (int) each));
            } else {
                out.append(each);
            }
        }
        out.append('"');
    }
}
