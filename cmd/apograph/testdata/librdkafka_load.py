"""Writes records through librdkafka: plain and in transactions, committed and aborted, with old and future times."""
import random
import sys

from confluent_kafka import KafkaException, Producer

server, topic, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = random.Random(seed)
codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
failures = []


def check(err, _):
    if err is not None:
        failures.append(err)


def producer(**settings):
    return Producer({"bootstrap.servers": server, "enable.idempotence": True, "compression.type": rng.choice(codecs), "linger.ms": 2, **settings})


def write(p, n, expect=True):
    for i in range(n):
        timestamp = rng.choice([1, 1000, 1_700_000_000_000 + i, 4_102_444_800_000])
        key = rng.choice([None, b"", b"k%d" % rng.randrange(10)])
        value = rng.choice([None, b"", bytes(rng.randrange(256) for _ in range(rng.randrange(1, 400)))])
        headers = rng.choice([None, [("h", b"1"), ("h", None), ("", b"")]])
        p.produce(topic, value, key, partition=rng.randrange(2), timestamp=timestamp, headers=headers, on_delivery=check if expect else None)
        p.poll(0)


plain = producer()
write(plain, 200)
plain.flush()
transactional = producer(**{"transactional.id": "librdkafka", "transaction.timeout.ms": 10000})
transactional.init_transactions()
try:
    for _ in range(10):
        transactional.begin_transaction()
        abort = rng.random() < 0.4
        write(transactional, rng.choice([1, 1, 30]), expect=False)
        if abort:
            transactional.abort_transaction()
        else:
            transactional.commit_transaction()
except KafkaException as e:
    # A coordinator that is too busy ends a transaction by itself: the next
    # producer of the same id goes on, and what was written is decided all the same.
    print(e, file=sys.stderr)
if failures:
    sys.exit(str(failures[0]))
