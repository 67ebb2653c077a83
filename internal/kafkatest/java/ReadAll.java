import java.io.PrintStream;
import java.io.BufferedOutputStream;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Prints every record of a topic as the Java consumer returns it under
 * read_committed, one a line: partition, offset, timestamp, key, value, headers.
 * Bytes are "x" and hexadecimal digits, null is "n"; headers are name:value,
 * joined by commas, "-" if there are none.
 *
 * Arguments: bootstrap servers, topic.
 */
public class ReadAll {
    public static void main(String[] args) {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("isolation.level", "read_committed");
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "none");
        p.put("key.deserializer", ByteArrayDeserializer.class.getName());
        p.put("value.deserializer", ByteArrayDeserializer.class.getName());
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(p)) {
            List<TopicPartition> all = new ArrayList<>();
            for (PartitionInfo info : consumer.partitionsFor(args[1]))
                all.add(new TopicPartition(args[1], info.partition()));
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            for (boolean more = true; more; ) {
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(200)))
                    if (r.offset() < ends.get(new TopicPartition(r.topic(), r.partition())))
                        print(out, r);
                more = false;
                for (TopicPartition tp : all)
                    more |= consumer.position(tp) < ends.get(tp);
            }
        }
        out.flush();
        if (out.checkError())
            System.exit(1);
    }

    private static void print(PrintStream out, ConsumerRecord<byte[], byte[]> r) {
        StringBuilder line = new StringBuilder();
        line.append(r.partition()).append(' ').append(r.offset()).append(' ').append(r.timestamp());
        line.append(' ').append(hex(r.key())).append(' ').append(hex(r.value())).append(' ');
        int n = 0;
        for (Header h : r.headers()) {
            if (n++ > 0)
                line.append(',');
            line.append(hex(h.key().getBytes(java.nio.charset.StandardCharsets.UTF_8))).append(':').append(hex(h.value()));
        }
        out.println(n == 0 ? line.append('-') : line);
    }

    private static String hex(byte[] b) {
        return b == null ? "n" : "x" + HexFormat.of().formatHex(b);
    }
}
