import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.CRC32;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Has consumers of groups go on where their groups stand, to the end that the
 * topic has then, and prints what each got, one a line, separated by tabs: group,
 * position at the start, offset of the first record (-1: none), number of records,
 * CRC-32 of their values in order. Nothing is committed.
 *
 * Arguments: bootstrap servers, topic of one partition, group.protocol,
 * auto.offset.reset. Standard input: groups, one a line.
 */
public class FailOver {
    private static final int AT_ONCE = 4;

    private final String[] args;
    private final TopicPartition partition;

    private FailOver(String[] args) {
        this.args = args;
        partition = new TopicPartition(args[1], 0);
    }

    public static void main(String[] args) throws Exception {
        FailOver f = new FailOver(args);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE);
        List<Future<String>> answers = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String group = line;
            answers.add(pool.submit(() -> f.goOn(group)));
        }
        pool.shutdown();
        for (Future<String> answer : answers)
            System.out.write((answer.get() + "\n").getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group) {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("group.id", group);
        p.put("group.protocol", args[2]);
        p.put("auto.offset.reset", args[3]);
        p.put("enable.auto.commit", "false");
        p.put("isolation.level", "read_committed");
        p.put("max.poll.records", "5000");
        p.put("key.deserializer", ByteArrayDeserializer.class.getName());
        p.put("value.deserializer", ByteArrayDeserializer.class.getName());
        return new KafkaConsumer<>(p);
    }

    private String goOn(String group) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(group)) {
            List<ConsumerRecord<byte[], byte[]>> early = new ArrayList<>();
            consumer.subscribe(List.of(args[1]));
            while (consumer.assignment().isEmpty())
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(50)))
                    early.add(r);
            long start = early.isEmpty() ? consumer.position(partition) : early.get(0).offset();
            long end = consumer.endOffsets(List.of(partition)).get(partition), first = -1, count = 0;
            CRC32 crc = new CRC32();
            for (Iterable<ConsumerRecord<byte[], byte[]>> records = early; ; records = consumer.poll(Duration.ofMillis(200))) {
                for (ConsumerRecord<byte[], byte[]> r : records) {
                    if (count++ == 0)
                        first = r.offset();
                    crc.update(r.value());
                }
                if (consumer.position(partition) >= end)
                    return group + "\t" + start + "\t" + first + "\t" + count + "\t" + crc.getValue();
            }
        }
    }
}
