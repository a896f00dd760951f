#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""train.py LIBRARY: the README's example, y = 3x, from Python's ctypes; and what bindings need: the
version, sizes of structs, lines of errors, texts that are freed, weights by name."""
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import quern as qn

FATES = ["taken", "left out", "not in file", "not in model", "other shape", "other type",
         "first rows"]
SAMPLES = 64
quern = None


@qn.Fetch
def fetch(_user, name, first, count, rows):
    """y = 3 x for x in [-1, 1)."""
    for i in range(count):
        rows[i] = (3 if name == b"y" else 1) * ((first + i) / 32 - 1)
    return 0


class Training:
    """The README's objects, ended in turn."""

    def __init__(self, *weights):
        self.device, self.graph, self.plan, self.trainer = (qn.new() for _ in range(4))
        quern.device_open(qn.byref(self.device), None)
        quern.graph_create(qn.byref(self.graph), None)
        x, y = (quern.input(self.graph, name, qn.F32, 2, qn.dims(qn.BATCH, 1)) for name in
                (b"x", b"y"))
        for name in weights:
            w = quern.parameter(self.graph, name, 2, qn.dims(1, 1), None)
            x = quern.linear(self.graph, x, w, qn.Tensor())
        quern.loss(self.graph, quern.squared_error(self.graph, x, y), b"e", None)
        quern.graph_status(self.graph)
        params = qn.PlanParams(budget=64 << 10, cache_dir=b"")
        params.batch[0] = SAMPLES
        quern.plan_create(qn.byref(self.plan), self.graph, quern.device_facts(self.device),
                          qn.byref(params), None)
        quern.trainer_open(qn.byref(self.trainer), self.device, self.plan, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        quern.trainer_close(qn.byref(self.trainer))
        quern.plan_destroy(qn.byref(self.plan))
        quern.graph_destroy(qn.byref(self.graph))
        quern.device_close(qn.byref(self.device))

    def step(self, samples=SAMPLES):
        cycle = qn.Cycle(samples=samples, lr=0.5, fetch=fetch)
        quern.trainer_step(self.trainer, qn.byref(cycle), None)

    def read(self, name):
        value = qn.c_float()
        quern.trainer_read(self.trainer, name, qn.byref(value), 1)
        return value.value

    def write(self, name, value):
        quern.trainer_write(self.trainer, name, qn.byref(qn.c_float(value)), 1)


class Bindings(unittest.TestCase):
    def assert_error(self, status, words, call, *arguments):
        with self.assertRaises(qn.Error) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.status, status)
        self.assertIn(words, caught.exception.line)

    def test_version_and_structs(self):
        numbers = (qn.c_int * 3)()
        self.assertEqual(quern.version(numbers).decode(), ".".join(map(str, numbers)))
        for name, (kind, _) in qn.STRUCTS.items():
            self.assertEqual(quern.struct_size(name.encode()), qn.sizeof(kind), name)
        self.assertEqual(quern.struct_size(b"qn_plan"), 0)

    def test_another_library_is_refused(self):
        for line, version, structs in (
                ("qn_log: has 4 bytes in the program and 24 in Quern", qn.VERSION,
                 {"qn_log": (qn.Tensor, 0)}),
                ("qn_log: has other fields in the program", qn.VERSION, {"qn_log": (qn.Log, 7)}),
                ("qn_plan: Quern", qn.VERSION, {"qn_plan": (qn.Log, 0)}),
                ("another ABI", "99.0.0", {})):
            self.assert_error("QN_ERR_ARGUMENT", line, quern.compare, version, structs)

    def test_y_is_3_x(self):
        metrics = qn.Metrics()
        with Training(b"weight") as training:
            for _ in range(100):
                training.step()
            quern.trainer_finish(training.trainer, qn.byref(metrics))
            self.assertAlmostEqual(training.read(b"weight"), 3, places=5)
        self.assertTrue(metrics.valid)
        self.assertEqual((metrics.update, metrics.samples, metrics.lr), (99, SAMPLES, 0.5))
        self.assertLess(metrics.loss, 1e-9)

    def test_errors_have_their_lines(self):
        with Training(b"weight") as training:
            self.assert_error("QN_ERR_ARGUMENT", "7 samples are not an effective batch",
                              training.step, 7)
            self.assert_error("QN_ERR_ARGUMENT", "bias: no such parameter", training.read, b"bias")
            elsewhere = []
            thread = threading.Thread(target=lambda: elsewhere.append(quern.last_error()))
            thread.start()
            thread.join()
            self.assertEqual(elsewhere, [b""])
            self.assertIn(b"bias", quern.last_error())
            training.step()

    def test_texts_are_freed(self):
        with Training(b"weight") as training:
            for _ in range(3):
                self.assertIn("planned peak", quern.text(quern.plan_text(training.plan)))

    def test_weights_by_name(self):
        told = []

        @qn.WeightsFn
        def hear(_user, record):
            told.append((record.contents.name.decode(), FATES[record.contents.fate],
                         record.contents.file.rank))

        with tempfile.TemporaryDirectory() as folder, Training(b"a", b"b") as one, \
                Training(b"b", b"c") as other:
            path = str(Path(folder) / "weights.safetensors").encode()
            one.write(b"a", 5)
            one.write(b"b", 7)
            other.write(b"c", 11)
            quern.trainer_save_weights(one.trainer, path, None)
            self.assert_error("QN_ERR_FORMAT", "tensor c: is missing",
                              quern.trainer_load_weights, other.trainer, path, None)
            part = qn.WeightsParams(partial=True, fn=hear)
            quern.trainer_load_weights(other.trainer, path, qn.byref(part))
            self.assertEqual(told, [("b", "taken", 2), ("c", "not in file", 0),
                                    ("a", "not in model", 2)])
            self.assertEqual((other.read(b"b"), other.read(b"c")), (7, 11))
            self.assert_error("QN_ERR_ARGUMENT", "include: no tensor is called 'd*'",
                              quern.trainer_save_weights, one.trainer, path,
                              qn.byref(qn.WeightsParams(include=b"d*")))


if __name__ == "__main__":
    quern = qn.Library(sys.argv.pop(1))
    result = unittest.main(exit=False).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
