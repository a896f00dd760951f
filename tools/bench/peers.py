# SPDX-License-Identifier: MIT
"""The other side of compare.py: times one library, case by case.

    peers.py torch|numpy|tinygrad THREADS SECONDS

Prints {"version": ...}, then reads a case a line, {"op": ..., "group": ..., "size": [...]} as
`quern bench --json` gives them, and answers each with a line: [FASTEST, MEDIAN] in seconds of one
call, null for what the library is not asked.
"""
import json
import statistics
import sys
import time


def time_calls(function, least):
    """Seconds of one call, the fastest and the median of several, after two that do not count."""
    function()
    function()
    seconds = []
    while len(seconds) < 3 or (sum(seconds) < least and len(seconds) < 1000):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds), statistics.median(seconds)


class Numpy:
    """OpenBLAS, through the product of two arrays."""

    def __init__(self, threads):
        import numpy
        self.np = numpy
        config = numpy.show_config(mode='dicts')['Build Dependencies']['blas']
        self.version = f"NumPy {numpy.__version__} ({config['name']} {config['version']})"

    def prepare(self, op, group, size):
        np, (m, n, k) = self.np, size[:3]
        if op != 'linear':
            return None
        random = np.random.default_rng(1)
        x, w, dy = (random.random(shape, dtype=np.float32) for shape in ((m, k), (n, k), (m, n)))
        a, b = {'forward': (x, w.T), 'input gradient': (dy, w), 'weight gradient': (dy.T, x)}[group]
        out = np.empty((a.shape[0], b.shape[1]), np.float32)
        return lambda: np.dot(a, b, out=out)


class Torch:
    def __init__(self, threads):
        import torch
        self.torch = torch
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        self.version = f'PyTorch {torch.__version__}'

    def prepare(self, op, group, size):
        return getattr(self, op, lambda *_: None)(group, size)

    def linear(self, group, size):
        t, (m, n, k) = self.torch, size[:3]
        x, w, b, dy = t.randn(m, k), t.randn(n, k), t.randn(n), t.randn(m, n)
        return {'forward': lambda: t.nn.functional.linear(x, w, b),
                'input gradient': lambda: t.mm(dy, w),
                'weight gradient': lambda: t.mm(dy.t(), x)}[group]

    def conv2d(self, group, size):
        t, (batch, c, side, o, k, stride) = self.torch, size[:6]
        groups, pad = size[6] or 1, k // 2
        x, w = t.randn(batch, c, side, side), t.randn(o, c // groups, k, k)
        y = t.nn.functional.conv2d(x, w, None, stride, pad, 1, groups)
        dy = t.randn_like(y)

        def gradients(image, weight):
            return t.ops.aten.convolution_backward(dy, x, w, None, [stride] * 2, [pad] * 2, [1, 1],
                                                   False, [0, 0], groups, [image, weight, False])
        return {'forward': lambda: t.nn.functional.conv2d(x, w, None, stride, pad, 1, groups),
                'input gradient': lambda: gradients(True, False),
                'weight gradient': lambda: gradients(False, True),
                'gradients': lambda: gradients(True, True)}[group]

    def attention(self, group, size):
        t, (batch, tokens, heads, width) = self.torch, size[:4]
        q, k, v = (t.randn(batch, heads, tokens, width, requires_grad=True) for _ in range(3))
        dy = t.randn(batch, heads, tokens, width)

        def both():
            t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).backward(dy)
        return both

    def gpt2(self, group, size):
        import gpt
        return gpt.updates(*size[:2], bf16=group == 'bf16', compiled=group == 'compiled')

    def update(self, group, size):
        t, name = self.torch, group
        if not name.startswith(('demonstration', 'resnet18')):
            return None
        net = demonstration(t) if name.startswith('demonstration') else resnet18(t)
        shape = (1, 28, 28) if name.startswith('demonstration') else (3, 32, 32)
        optimizer = t.optim.AdamW(net.parameters(), lr=1e-4)
        images = t.randint(0, 256, (size[0], *shape), dtype=t.uint8)
        labels = t.randint(0, 10, (size[0],))

        def step():
            loss = t.nn.functional.cross_entropy(net((images / 255 - 0.286) / 0.353), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.item()
        return step


def demonstration(t, width=32):
    """The network of the recipe fashion-mnist."""
    def block(inputs, outputs):
        return [t.nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), t.nn.BatchNorm2d(outputs),
                t.nn.ReLU()]
    return t.nn.Sequential(
        *block(1, width), *block(width, width), t.nn.MaxPool2d(2), *block(width, 2 * width),
        *block(2 * width, 2 * width), t.nn.MaxPool2d(2), *block(2 * width, 4 * width),
        t.nn.AdaptiveAvgPool2d(1), t.nn.Flatten(), t.nn.Linear(4 * width, 10))


def resnet18(t):
    """With a first convolution of 3 x 3 and no pooling after it."""
    class Block(t.nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            conv, norm = t.nn.Conv2d, t.nn.BatchNorm2d
            self.body = t.nn.Sequential(
                conv(inputs, outputs, 3, stride, 1, bias=False), norm(outputs), t.nn.ReLU(),
                conv(outputs, outputs, 3, 1, 1, bias=False), norm(outputs))
            self.fit = t.nn.Sequential() if inputs == outputs and stride == 1 else t.nn.Sequential(
                conv(inputs, outputs, 1, stride, bias=False), norm(outputs))

        def forward(self, x):
            return t.nn.functional.relu(self.body(x) + self.fit(x))

    layers, inputs = [], 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inputs, width, stride), Block(width, width, 1)]
        inputs = width
    return t.nn.Sequential(
        t.nn.Conv2d(3, 64, 3, 1, 1, bias=False), t.nn.BatchNorm2d(64), t.nn.ReLU(), *layers,
        t.nn.AdaptiveAvgPool2d(1), t.nn.Flatten(), t.nn.Linear(512, 10))


class Tinygrad:
    """On the OpenCL device that its own search finds (environment DEV=CL)."""

    def __init__(self, threads):
        import importlib.metadata
        import tinygrad
        self.tg = tinygrad
        version = importlib.metadata.version('tinygrad')
        self.version = f'tinygrad {version} on {tinygrad.Device.DEFAULT}'

    def prepare(self, op, group, size):
        if op != 'update' or not group.startswith('demonstration'):
            return None
        from tinygrad import nn
        Tensor = self.tg.Tensor
        channels = [1, 32, 32, 64, 64, 128]
        convs = [nn.Conv2d(a, b, 3, padding=1, bias=False)
                 for a, b in zip(channels, channels[1:])]
        norms = [nn.BatchNorm(c) for c in channels[1:]]
        last = nn.Linear(128, 10)
        parameters = nn.state.get_parameters([convs, norms, last])
        optimizer = nn.optim.AdamW(parameters, lr=1e-4)
        images, labels = Tensor.rand(size[0], 1, 28, 28), Tensor.randint(size[0], high=10)

        def network(x):
            for i, (conv, norm) in enumerate(zip(convs, norms)):
                x = norm(conv(x)).relu()
                x = x.max_pool2d(2) if i in (1, 3) else x
            return last(x.mean((2, 3)))

        @self.tg.TinyJit
        def step(x, y):
            optimizer.zero_grad()
            loss = network(x).sparse_categorical_crossentropy(y).backward()
            return loss.realize(*optimizer.schedule_step())

        def train():
            with self.tg.Context(TRAINING=1):
                return step(images.realize(), labels.realize()).item()
        return train


PEERS = {'torch': Torch, 'numpy': Numpy, 'tinygrad': Tinygrad}


def main():
    name, threads, least = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    peer = PEERS[name](threads)
    print(json.dumps({'version': peer.version}), flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        function = peer.prepare(case['op'], case['group'], case['size'])
        print(json.dumps(time_calls(function, least) if function else None), flush=True)


if __name__ == '__main__':
    main()
