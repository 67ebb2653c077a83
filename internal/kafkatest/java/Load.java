import java.util.*;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills a topic through the Java client from a seed: all codecs, null and empty
 * keys and values, headers, times out of order, idempotent and transactional
 * producers, two of the latter interleaved, commits and aborts, transactions of
 * one record.
 *
 * Arguments: bootstrap servers, topic, partitions, records, seed, and "keyed" if
 * every record shall have a key.
 */
public class Load {
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};

    private final String servers, topic;
    private final int partitions;
    private final boolean keyed;
    private final Random random;
    private int number;

    private Load(String[] args) {
        servers = args[0];
        topic = args[1];
        partitions = Integer.parseInt(args[2]);
        random = new Random(Long.parseLong(args[4]));
        keyed = args.length > 5 && args[5].equals("keyed");
    }

    public static void main(String[] args) throws Exception {
        Load load = new Load(args);
        int records = Integer.parseInt(args[3]);
        for (String codec : CODECS)
            load.plain(codec, records / 10);
        load.transactions(records - load.number);
    }

    private KafkaProducer<byte[], byte[]> producer(String codec, String transactionalId) {
        Properties p = new Properties();
        p.put("bootstrap.servers", servers);
        p.put("acks", "all");
        p.put("compression.type", codec);
        p.put("linger.ms", "5");
        p.put("batch.size", String.valueOf(1000 + random.nextInt(30000)));
        p.put("key.serializer", ByteArraySerializer.class.getName());
        p.put("value.serializer", ByteArraySerializer.class.getName());
        if (transactionalId != null)
            p.put("transactional.id", transactionalId);
        return new KafkaProducer<>(p);
    }

    private void plain(String codec, int records) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(codec, null)) {
            send(producer, records);
        }
    }

    private void transactions(int records) throws Exception {
        try (KafkaProducer<byte[], byte[]> a = producer("lz4", topic + "-a"); KafkaProducer<byte[], byte[]> b = producer("none", topic + "-b")) {
            a.initTransactions();
            b.initTransactions();
            for (int end = number + records; number < end; ) {
                a.beginTransaction();
                b.beginTransaction();
                int small = 1 + random.nextInt(3);
                send(a, Math.min(1 + random.nextInt(60), end - number));
                send(b, Math.min(small, Math.max(1, end - number)));
                a.flush();
                send(a, 1);
                end(b);
                end(a);
            }
        }
    }

    private void end(KafkaProducer<byte[], byte[]> producer) {
        if (random.nextInt(3) > 0)
            producer.commitTransaction();
        else
            producer.abortTransaction();
    }

    private void send(KafkaProducer<byte[], byte[]> producer, int records) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = 0; i < records; i++)
            sent.add(producer.send(record()));
        producer.flush();
        for (Future<RecordMetadata> f : sent)
            f.get();
    }

    private ProducerRecord<byte[], byte[]> record() {
        number++;
        long time = 1_700_000_000_000L + number * 3L;
        switch (random.nextInt(50)) {
            case 0: time = 0; break;
            case 1: time = 5000; break;
            case 2: time = 4_102_444_800_000L; break;
            case 3: time -= 86_400_000L * 30; break;
            default:
        }
        return new ProducerRecord<>(topic, random.nextInt(partitions), time, key(), value(), headers());
    }

    private byte[] key() {
        int dice = random.nextInt(20);
        if (dice == 0 && !keyed)
            return null;
        if (dice == 1)
            return new byte[0];
        return ("key-" + random.nextInt(100)).getBytes();
    }

    private byte[] value() {
        int dice = random.nextInt(100);
        if (dice < 5)
            return null;
        if (dice < 10)
            return new byte[0];
        byte[] b = new byte[dice == 99 ? 20_000 : random.nextInt(300)];
        if (dice < 40)
            random.nextBytes(b);
        else
            for (int i = 0; i < b.length; i++)
                b[i] = (byte) ("some text that repeats, number " + number).charAt(i % 28);
        return b;
    }

    private Headers headers() {
        RecordHeaders h = new RecordHeaders();
        if (random.nextInt(4) > 0)
            return h;
        h.add("trace", ("t" + number).getBytes());
        if (random.nextBoolean())
            h.add("trace", null);
        if (random.nextBoolean())
            h.add("", new byte[0]);
        return h;
    }
}
