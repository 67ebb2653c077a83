import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import java.util.Scanner;

/**
 * Reads files, a line of hexadecimal digits each, with L (bytes) or U (a reader of UTF-8) in front, and writes
 * for each what java.util.Properties puts, in order: key=value, both hexadecimal UTF-8, or "error".
 */
public class Golden {
    public static void main(String[] args) {
        Scanner in = new Scanner(System.in, StandardCharsets.US_ASCII);
        StringBuilder out = new StringBuilder();
        while (in.hasNextLine()) {
            String line = in.nextLine();
            out.append(load(line.charAt(0) == 'U', HexFormat.of().parseHex(line.substring(1)))).append('\n');
        }
        System.out.print(out);
    }

    private static String load(boolean reader, byte[] data) {
        List<String> puts = new ArrayList<>();
        Properties properties = new Properties() {
            @Override
            public synchronized Object put(Object key, Object value) {
                puts.add(hex((String) key) + "=" + hex((String) value));
                return super.put(key, value);
            }
        };
        try {
            ByteArrayInputStream stream = new ByteArrayInputStream(data);
            if (reader) {
                // As Files.newBufferedReader: what is no UTF-8 is an error.
                properties.load(new InputStreamReader(stream, StandardCharsets.UTF_8.newDecoder()));
            } else {
                properties.load(stream);
            }
        } catch (IOException | IllegalArgumentException e) {
            return "error";
        }
        return String.join(" ", puts);
    }

    /** Half of a surrogate pair alone has no UTF-8: U+FFFD stands for it. */
    private static String hex(String s) {
        StringBuilder whole = new StringBuilder();
        s.codePoints().forEach(c -> whole.appendCodePoint(c >= 0xD800 && c < 0xE000 ? 0xFFFD : c));
        return HexFormat.of().formatHex(whole.toString().getBytes(StandardCharsets.UTF_8));
    }
}
