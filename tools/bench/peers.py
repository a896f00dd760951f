# SPDX-License-Identifier: MIT
"""The other side of compare.py: times one library, case by case.

    peers.py torch|cuda|numpy|tinygrad THREADS SECONDS

Prints {"version": ...}, then reads a case a line, {"op": ..., "group": ..., "size": [...]} as
`quern bench --json` gives them, for PyTorch with "storage" (f32) beside, and answers each with a
line: [FASTEST, MEDIAN] in seconds of one call, null for what the library is not asked.
"""
import json
import statistics
import sys
import time

ROW = 2e-3  # seconds


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


def time_rows(function, least, wait):
    """The same for calls that only enqueue: as many in a row as take ROW, since each row ends with a
    wait; as `quern bench` does."""
    def row(count):
        for _ in range(count):
            function()
        wait()

    row(2)
    start = time.perf_counter()
    row(1)
    count = max(1, round(ROW / (time.perf_counter() - start)))
    return [seconds / count for seconds in time_calls(lambda: row(count), least)]


class Numpy:
    """OpenBLAS, through the product of two arrays."""

    def __init__(self, threads):
        import numpy
        self.np = numpy
        config = numpy.show_config(mode='dicts')['Build Dependencies']['blas']
        self.version = f"NumPy {numpy.__version__} ({config['name']} {config['version']})"

    def prepare(self, case):
        np, (m, n, k) = self.np, case['size'][:3]
        if case['op'] != 'linear':
            return None
        random = np.random.default_rng(1)
        x, w, dy = (random.random(shape, dtype=np.float32) for shape in ((m, k), (n, k), (m, n)))
        a, b = {'forward': (x, w.T), 'input gradient': (dy, w), 'weight gradient': (dy.T, x)}[case['group']]
        out = np.empty((a.shape[0], b.shape[1]), np.float32)
        return lambda: np.dot(a, b, out=out)


class Torch:
    device, wait = 'cpu', None
    NETWORKS = 'update', 'resnet', 'gpt2'

    def __init__(self, threads):
        import torch
        self.torch = torch
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        self.version = f'PyTorch {torch.__version__}'
        self.kinds = {'f32': torch.float32, 'f16': torch.float16, 'bf16': torch.bfloat16}

    def prepare(self, case):
        """Of kernels all operands have the storage type; networks compute as autocast chooses."""
        op, self.storage = case['op'], case.get('storage', 'f32')
        self.torch.set_default_dtype(self.kinds['f32' if op in self.NETWORKS else self.storage])
        return getattr(self, op, lambda *_: None)(case.get('group', ''), case['size'])

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
        return gpt.updates(*size[:2], bf16='bf16' in (group, self.storage),
                           compiled=group == 'compiled')

    def update(self, group, size):
        if group.startswith('demonstration'):
            return self.training(demonstration(self.torch), size[0], (1, 28, 28), 10)
        if group.startswith('resnet18'):
            return self.training(resnet(self.torch, 18, 3, 10), size[0], (3, 32, 32), 10)
        return None

    def resnet(self, group, size):
        """size: images, height and width, kernel of the first convolution; group: layers"""
        samples, side, stem = size
        return self.training(resnet(self.torch, int(group), stem, 1000), samples, (3, side, side), 1000)

    def training(self, net, samples, shape, classes):
        t, kind = self.torch, self.kinds[self.storage]
        optimizer = t.optim.AdamW(net.parameters(), lr=1e-4)
        images = t.randint(0, 256, (samples, *shape), dtype=t.uint8)
        labels = t.randint(0, classes, (samples,))

        def step():
            with t.autocast(self.device, kind, enabled=kind != t.float32):
                loss = t.nn.functional.cross_entropy(net((images / 255 - 0.286) / 0.353), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.item()
        return step


class Cuda(Torch):
    """On its GPU, with products of f32 as such."""

    device = 'cuda'

    def __init__(self, threads):
        super().__init__(threads)
        t = self.torch
        if not t.cuda.is_available():
            raise RuntimeError(f'{self.version} finds no CUDA')
        t.set_default_device(self.device)
        t.backends.cuda.matmul.allow_tf32 = t.backends.cudnn.allow_tf32 = False
        t.backends.cudnn.benchmark = True
        self.wait = t.cuda.synchronize
        self.version += f', CUDA {t.version.cuda}, cuDNN {t.backends.cudnn.version()}'


def demonstration(t, width=32):
    """The network of the recipe fashion-mnist."""
    def block(inputs, outputs):
        return [t.nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), t.nn.BatchNorm2d(outputs),
                t.nn.ReLU()]
    return t.nn.Sequential(
        *block(1, width), *block(width, width), t.nn.MaxPool2d(2), *block(width, 2 * width),
        *block(2 * width, 2 * width), t.nn.MaxPool2d(2), *block(2 * width, 4 * width),
        t.nn.AdaptiveAvgPool2d(1), t.nn.Flatten(), t.nn.Linear(4 * width, 10))


BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}


def resnet(t, depth, stem, classes):
    """With a first convolution of 7 x 7 and pooling, or of 3 x 3 for small images. Blocks are two
    convolutions of 3 x 3, in the deep one 1 x 1, 3 x 3 and 1 x 1 of four times the width."""
    grown = 4 if depth >= 50 else 1

    def unit(inputs, outputs, kernel, stride=1):
        return [t.nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
                t.nn.BatchNorm2d(outputs)]

    class Block(t.nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            outputs, relu = grown * width, t.nn.ReLU()
            self.body = t.nn.Sequential(
                *(unit(inputs, width, 3, stride) if grown == 1 else
                  [*unit(inputs, width, 1), relu, *unit(width, width, 3, stride)]), relu,
                *unit(width, outputs, 3 if grown == 1 else 1))
            self.fit = t.nn.Sequential(*([] if inputs == outputs and stride == 1 else
                                         unit(inputs, outputs, 1, stride)))

        def forward(self, x):
            return t.nn.functional.relu(self.body(x) + self.fit(x))

    layers, inputs = [*unit(3, 64, stem, 2 if stem == 7 else 1), t.nn.ReLU()], 64
    layers += [t.nn.MaxPool2d(3, 2, 1)] if stem == 7 else []
    for width, stride, count in zip((64, 128, 256, 512), (1, 2, 2, 2), BLOCKS[depth]):
        for number in range(count):
            layers.append(Block(inputs, width, 1 if number else stride))
            inputs = grown * width
    return t.nn.Sequential(*layers, t.nn.AdaptiveAvgPool2d(1), t.nn.Flatten(),
                           t.nn.Linear(inputs, classes))


class Tinygrad:
    """On the OpenCL device that its own search finds (environment DEV=CL)."""

    def __init__(self, threads):
        import importlib.metadata
        import tinygrad
        self.tg = tinygrad
        version = importlib.metadata.version('tinygrad')
        self.version = f'tinygrad {version} on {tinygrad.Device.DEFAULT}'

    def prepare(self, case):
        size = case['size']
        if case['op'] != 'update' or not case['group'].startswith('demonstration'):
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


PEERS = {'torch': Torch, 'cuda': Cuda, 'numpy': Numpy, 'tinygrad': Tinygrad}


def main():
    name, threads, least = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    peer = PEERS[name](threads)
    print(json.dumps({'version': peer.version}), flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        function, wait = peer.prepare(case), getattr(peer, 'wait', None)
        print(json.dumps(None if not function else time_rows(function, least, wait) if wait
                         else time_calls(function, least)), flush=True)


if __name__ == '__main__':
    main()
