import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * Prints what MirrorMaker 2's own client library makes of clusters. Each line of
 * standard input is a client: fields separated by tabs, of the form
 * property=NAME=VALUE, alias=ALIAS of an upstream cluster to ask about, and
 * group=GROUP to translate. Each line of the answer is a JSON document. Where
 * RemoteClusterUtils and MirrorClient answer the same question, they must agree;
 * of the groups the first is asked about twice.
 */
public class MirrorView {
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    private final Map<String, Object> properties = new HashMap<>();
    private final List<String> aliases = new ArrayList<>(), groups = new ArrayList<>();

    private MirrorView(String line) {
        for (String field : line.split("\t")) {
            String[] parts = field.split("=", 2);
            switch (parts[0]) {
                case "property": {
                    String[] property = parts[1].split("=", 2);
                    properties.put(property[0], property[1]);
                    break;
                }
                case "alias": aliases.add(parts[1]); break;
                case "group": groups.add(parts[1]); break;
                default: throw new IllegalArgumentException(field);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine())
            System.out.write((new MirrorView(line).look() + "\n").getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    private String look() throws Exception {
        try (MirrorClient client = new MirrorClient(properties)) {
            Set<String> checkpoints = same(client.checkpointTopics(), RemoteClusterUtils.checkpointTopics(properties));
            List<String> of = new ArrayList<>();
            for (String alias : aliases)
                of.add(quote(alias) + ":" + upstream(client, alias, checkpoints));
            return "{\"heartbeat_topics\":" + names(same(client.heartbeatTopics(), RemoteClusterUtils.heartbeatTopics(properties)))
                + ",\"checkpoint_topics\":" + names(checkpoints)
                + ",\"upstream_clusters\":" + names(same(client.upstreamClusters(), RemoteClusterUtils.upstreamClusters(properties)))
                + ",\"remote_topics\":" + names(client.remoteTopics())
                + ",\"upstream\":{" + String.join(",", of) + "}}";
        }
    }

    private String upstream(MirrorClient client, String alias, Set<String> checkpoints) throws Exception {
        int hops = same(client.replicationHops(alias), RemoteClusterUtils.replicationHops(properties, alias));
        List<String> offsets = new ArrayList<>();
        // Asked about a topic that is not there, the client waits for long.
        if (checkpoints.contains(client.replicationPolicy().checkpointsTopic(alias)))
            for (String group : groups)
                offsets.add(quote(group) + ":" + offsets(client, alias, group));
        return "{\"hops\":" + hops + ",\"remote_topics\":" + names(client.remoteTopics(alias)) + ",\"offsets\":{" + String.join(",", offsets) + "}}";
    }

    private String offsets(MirrorClient client, String alias, String group) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> found = RemoteClusterUtils.translateOffsets(properties, alias, group, PATIENCE);
        if (group.equals(groups.get(0))) // each takes a while
            same(client.remoteConsumerOffsets(group, alias, PATIENCE), found);
        List<String> all = new ArrayList<>();
        for (Map.Entry<TopicPartition, OffsetAndMetadata> e : found.entrySet())
            all.add("{\"topic\":" + quote(e.getKey().topic()) + ",\"partition\":" + e.getKey().partition()
                + ",\"offset\":" + e.getValue().offset() + ",\"metadata\":" + quote(e.getValue().metadata()) + "}");
        return "[" + String.join(",", all) + "]";
    }

    private static <T> T same(T a, T b) {
        if (!a.equals(b))
            throw new IllegalStateException("MirrorClient says " + a + ", RemoteClusterUtils says " + b);
        return a;
    }

    private static String names(Set<String> names) {
        List<String> quoted = new ArrayList<>();
        for (String name : new TreeSet<>(names))
            quoted.add(quote(name));
        return "[" + String.join(",", quoted) + "]";
    }

    private static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray())
            if (c == '"' || c == '\\' || c < ' ')
                b.append(String.format("\\u%04x", (int) c));
            else
                b.append(c);
        return b.append('"').toString();
    }
}
