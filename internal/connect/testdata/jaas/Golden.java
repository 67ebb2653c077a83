package org.apache.kafka.common.security;

import java.io.PrintStream;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;

/**
 * Writes what Kafka's own parser makes of values of sasl.jaas.config, one JSON object a line, to golden.jsonl. With the
 * jars of Kafka in DIR:
 *
 *   javac -cp 'DIR/*' -d /tmp/golden Golden.java && java -cp "/tmp/golden:DIR/*" org.apache.kafka.common.security.Golden golden.jsonl
 */
public class Golden {
    static final String[] PIECES = {
        "org.apache.kafka.common.security.plain.PlainLoginModule", "required", "Optional", "sufficient", "username", "password", "=", "=", "=", ";", ";", "\"", "'",
        "\"a b\"", "'c\"d'", "\"e'f\"", "\"\\\"q\\\"\"", "\"\\\\\"", "\"\\n\\t\\101\\7\\477\\8\\x\"", "\"\"", " ", " ", "\t", "\n", "// note\n", "/* note; */", "/", "*/",
        "-", "_", "$x", "12", "1.5", ".5", "-3", "-x", "a-b_c$1", "é", "日本", "a.b", "#", "\\", "{", ",", "true", "clientId", "\"k=v;\"", "\"unended", "x\u0085y", "\u00a0",
    };
    static final String[] WHOLE = {
        "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"alice\" password=\"alice-secret\";",
        "org.apache.kafka.common.security.scram.ScramLoginModule required username=alice password=alice-secret;",
        "org.apache.kafka.common.security.scram.ScramLoginModule required\n  username=\"alice\"\n  password=\"a\\\"b\\\\c\";",
        "org.apache.kafka.common.security.plain.PlainLoginModule   REQUIRED username = 'a' password = 'b' ; ",
        "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"a\" username=\"b\" password=\"\";",
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
        "a.B required user=1;", "a.B required user=\"1\";", "a.B required user=-;", "a.B required user=a1.b-2;", "a.B required;a.B required;", "a.B required;;", ";", "", "  ",
        "a.B required k=\"v\"", "a.B needed k=v;", "a.B;", "a.B required k;", "a.B required k=;", "a.B required =v;", "\"a.B\" \"required\" \"k\"=\"v\";",
        "a.B required k=\"\\0\" l=\"\\377\" m=\"\\400\" n=\"\\18\";", "a.B required // x\n k=v; // y", "a.B required k=\"// no note\";", "a.B required k=a/b;\n", "a.B required k='x\ny';", "a.B required k=v / note\n;", "a.B / note\nrequired;",
    };

    public static void main(String[] args) throws Exception {
        try (PrintStream out = new PrintStream(args[0], "US-ASCII")) {
            for (String text : WHOLE)
                print(out, text);
            Random random = new Random(7);
            for (int i = 0; i < 400; i++) {
                StringBuilder b = new StringBuilder(random.nextInt(5) == 0 ? "" : "m.M required ");
                int n = random.nextInt(6);
                for (int j = 0; j < n; j++) {
                    if (random.nextInt(8) > 0)
                        b.append("k" + j).append(random.nextBoolean() ? "=" : " = ").append(PIECES[11 + random.nextInt(PIECES.length - 11)]).append(' ');
                    else if (random.nextInt(2) == 0)
                        b.append(PIECES[random.nextInt(PIECES.length)]).append('=').append(PIECES[random.nextInt(PIECES.length)]).append(' ');
                    else
                        b.append(PIECES[random.nextInt(PIECES.length)]);
                }
                print(out, random.nextInt(4) == 0 ? b.toString() : b + ";");
            }
        }
    }

    static void print(PrintStream out, String text) {
        out.print("{\"text\":" + quote(text));
        try {
            AppConfigurationEntry[] entries = new JaasConfig("c", text).getAppConfigurationEntry("c");
            if (entries.length != 1 || entries[0].getOptions().containsKey(null))
                throw new IllegalArgumentException();
            out.print(",\"module\":" + quote(entries[0].getLoginModuleName()) + ",\"options\":{");
            String separator = "";
            for (Map.Entry<String, ?> e : new TreeMap<>(entries[0].getOptions()).entrySet()) {
                out.print(separator + quote(e.getKey()) + ":" + quote((String) e.getValue()));
                separator = ",";
            }
            out.print("}");
        } catch (RuntimeException e) {
            // without a module: not accepted
        }
        out.println("}");
    }

    static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c < ' ' || c > '~' || c == '"' || c == '\\')
                b.append(String.format("\\u%04x", (int) c));
            else
                b.append(c);
        }
        return b.append('"').toString();
    }
}
