package org.apache.kafka.connect.mirror;

import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.apache.kafka.common.config.ConfigDef;

/**
 * With the argument "keys": writes the definitions of MirrorMaker 2's connectors, a key a line. Else reads
 * mm2.properties files, a line of hexadecimal digits each, and writes for each the herders, what the source connector
 * of A->B gets and what the worker of A->B gets: three lines, fields separated by tabs.
 */
public class Effective {
    public static void main(String[] args) {
        if (args.length > 0) {
            keys("source", MirrorSourceConfig.CONNECTOR_CONFIG_DEF);
            keys("checkpoint", MirrorCheckpointConfig.CONNECTOR_CONFIG_DEF);
            keys("heartbeat", MirrorHeartbeatConfig.CONNECTOR_CONFIG_DEF);
            keys("client", MirrorClientConfig.CLIENT_CONFIG_DEF);
            return;
        }
        Scanner in = new Scanner(System.in, StandardCharsets.US_ASCII);
        while (in.hasNextLine()) {
            effective(new String(HexFormat.of().parseHex(in.nextLine()), StandardCharsets.ISO_8859_1));
        }
    }

    private static void keys(String of, ConfigDef definitions) {
        for (ConfigDef.ConfigKey k : new TreeMap<>(definitions.configKeys()).values()) {
            Object value = k.defaultValue;
            if (value instanceof List)
                value = ((List<?>) value).stream().map(Object::toString).collect(Collectors.joining(", "));
            if (value instanceof Class)
                value = ((Class<?>) value).getName();
            boolean none = value == null || value == ConfigDef.NO_DEFAULT_VALUE;
            System.out.println(of + "\t" + k.name + "\t" + k.type + (none ? "" : "\t" + value));
        }
    }

    private static void effective(String text) {
        try {
            Properties properties = new Properties();
            properties.load(new StringReader(text));
            Map<String, String> props = new HashMap<>();
            properties.forEach((k, v) -> props.put((String) k, (String) v));
            props.put("plugin.discovery", "service_load"); // else all classes are searched, for each file
            MirrorMakerConfig config = new MirrorMakerConfig(props);
            System.out.println(config.clusterPairs().stream().map(Object::toString).sorted().collect(Collectors.joining("\t")));
            SourceAndTarget pair = new SourceAndTarget("A", "B");
            print(config.connectorBaseConfig(pair, MirrorSourceConnector.class));
            print(config.workerConfig(pair));
        } catch (Exception e) {
            System.out.println("error\n\n");
        }
    }

    private static void print(Map<String, String> props) {
        System.out.println(new TreeSet<>(props.entrySet().stream().map(e -> e.getKey() + "=" + e.getValue()).toList()).stream().collect(Collectors.joining("\t")));
    }
}
