"""Has consumers of groups go on where the groups stand, to the end of a topic of one partition, and prints what each got.

Arguments: bootstrap servers, topic, group.protocol. Standard input: groups, one a line. Each line of the answer: group, position
at the start, offset of the first record (-1: none), number of records, CRC-32 of their values, separated by tabs.
"""
import sys
import zlib

from confluent_kafka import Consumer, TopicPartition

server, topic, protocol = sys.argv[1:4]


def go_on(group):
    settings = {
        "bootstrap.servers": server,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings)
    try:
        partition = TopicPartition(topic, 0)
        first_offset, end = consumer.get_watermark_offsets(partition, timeout=30)
        # librdkafka tells a position only of what it has read.
        start = consumer.committed([partition], timeout=30)[0].offset
        if start < 0:
            start = first_offset
        consumer.subscribe([topic])
        early = []
        while not consumer.assignment():
            early += consumer.consume(1000, timeout=0.05)
        first, count, crc, position = -1, 0, 0, start
        while True:
            for m in early:
                if m.error():
                    sys.exit(str(m.error()))
                if count == 0:
                    first = m.offset()
                count += 1
                crc = zlib.crc32(m.value(), crc)
                position = m.offset() + 1
            if position >= end:
                return start, first, count, crc
            early = consumer.consume(5000, timeout=0.2)
    finally:
        consumer.close()


for line in sys.stdin:
    name = line.rstrip("\n")
    print(name, *go_on(name), sep="\t")
