"""Calls of DyNet's functions, whose values, dimensions and gradients real DyNet was asked for (`calls.json`).

Runs with both: nothing here is newer than Python 3.6.
"""

import numpy as np

ARRAYS = {
    "v": np.array([0.5, -1.25, 2.0]),
    "w": np.array([1.5, 0.25, -0.75]),
    "u": np.array([0.3, 0.6]),
    "s": np.array([1.7]),
    "M": np.array([[0.1, -0.4, 0.9], [1.3, 0.2, -0.6]]),
    "N": np.array([[0.7, 0.5, -0.3], [-0.2, 1.1, 0.4]]),
    "C": np.array([[0.5], [-1.0], [1.5]]),
    "R": np.array([[0.2, 0.4, -0.8]]),
    "Q": np.array([[2.0, 0.3, -0.1], [0.4, 1.5, 0.2], [-0.3, 0.1, 1.8]]),
    "T": np.sin(np.arange(24.0)).reshape(2, 3, 4),
    "I": np.sin(np.arange(40.0) * 1.7).reshape(4, 5, 2),
    "F": np.cos(np.arange(24.0) * 0.9).reshape(2, 3, 2, 2),
    "f": np.array([0.1, -0.2]),
    "D": np.cos(np.arange(12.0)).reshape(2, 3, 2),
    "g": np.sin(np.arange(12.0)) / 2,
    "A": np.sin(np.arange(36.0) * 0.7).reshape(12, 3),
}
TABLES = {"L": np.sin(np.arange(15.0) * 1.3).reshape(5, 3), "K": np.cos(np.arange(10.0)).reshape(5, 2)}

CALLS = """
s; v; M; T; L[2]; dy.lookup(L, 2); dy.lookup(L, 2, update=False); dy.lookup_batch(L, [1, 3, 1]); L.batch([4, 0])
dy.lookup_batch(L, [2]); v * s; v * 2; 2 * v; s * s; M * v; M * C; R * v; v * R; M * B; Q * B; M * 2.0; 0.5 * M; B * 2
b * b; s + v; v + s; v + 1; 1 + v; 1 - v; v - 1; v + C; C + v; M + R; v + R; M + u; u + M; M - u; v - w; -v; v / 2
s + M; M + s; M - s; s - M; v + B; B + B; B + b; b + v; B - v; v - B; 1 - B; v + b; b + M; dy.cmult(v, C)
dy.cmult(s, v); dy.cmult(v, s); dy.cmult(M, u); dy.cmult(v, w); dy.cmult(B, b); dy.cmult(b, B); dy.cmult(B, v)
dy.cdiv(v, s); dy.cdiv(M, u); dy.cdiv(v, w); dy.cdiv(B, b); dy.esum([v, w]); dy.esum([v, C]); dy.esum([v, B])
dy.esum([s, s]); dy.esum([B, B, v]); dy.average([v, w]); dy.emax([v, w]); dy.bmax(v, w); dy.bmin(v, w)
dy.emax([B, B + 1]); dy.logsumexp([v, w]); dy.logsumexp([v]); dy.logsumexp([B, v]); dy.logsumexp([s, s, s])
dy.concatenate([v, w]); dy.concatenate([v, C]); dy.concatenate([s, v]); dy.concatenate([s, s]); dy.concatenate([v, B])
dy.concatenate([B, B]); dy.concatenate([M, N]); dy.concatenate([M, N], d=1); dy.concatenate([v, w], d=1)
dy.concatenate([T, T], 2); dy.concatenate([v]); dy.concatenate_cols([v, w]); dy.concatenate_cols([C, v])
dy.concatenate_cols([s, s]); dy.concatenate_cols([M, M]); dy.concatenate_cols([B, v])
dy.concatenate_to_batch([v, w, v]); dy.concatenate_to_batch([B, v]); dy.concatenate_to_batch([s, s]); dy.transpose(v)
dy.transpose(M); dy.transpose(R); dy.transpose(T, [2, 0, 1]); dy.transpose(BM); v[0]; v[-1]; v[0:2]; v[1:]; v[0:1]
M[0]; M[0:1]; M[0][1]; T[1]; T[1][2]; T[0:1]; B[0]; B[1:3]; BM[0]; B[-1]; v[0:3:2]; dy.sum_elems(M); dy.sum_elems(BM)
dy.sum_elems(v); dy.sum_elems(s); dy.mean_elems(M); dy.std_elems(M); dy.moment_elems(M, 2); dy.moment_elems(M, 3)
dy.mean_elems(B); dy.std_elems(B); dy.sum_batches(BM); dy.sum_batches(v); dy.mean_batches(B); dy.std_batches(B)
dy.moment_batches(B, 2); dy.mean_batches(b); dy.sum_dim(M, [0]); dy.sum_dim(M, [1]); dy.sum_dim(M, [0, 1])
dy.sum_dim(v, [0]); dy.sum_dim(BM, [0], b=True); dy.sum_dim(BM, [], True); dy.sum_dim(BM, [0, 1], True)
dy.sum_dim(BM, [1]); dy.sum_dim(T, [2]); dy.sum_dim(T, [0, 2]); dy.mean_dim(M, [0], False); dy.mean_dim(BM, [1], True)
dy.mean_dim(M, [1], False, n=5); dy.std_dim(M, [0], False); dy.std_dim(M, [1], False, n=5); dy.std_dim(BM, [0], True)
dy.moment_dim(M, [0], 2, False); dy.moment_dim(BM, [0], 3, True); dy.moment_dim(BM, [0], 3, True, 5); dy.max_dim(M)
dy.max_dim(M, 1); dy.max_dim(v); dy.max_dim(BM, 0); dy.max_dim(T, 2); dy.softmax(v); dy.softmax(M); dy.softmax(M, 1)
dy.softmax(BM, 1); dy.softmax(B); dy.log_softmax(v); dy.log_softmax(M); dy.log_softmax(B); dy.logsumexp_dim(M, 0)
dy.logsumexp_dim(M, 1); dy.logsumexp_dim(v); dy.logsumexp_dim(B); dy.pick(v, 1); dy.pick(M, 1); dy.pick(M, 1, 1)
dy.pick(T, 1, 2); dy.pick(B, 2); dy.pick_range(v, 0, 2); dy.pick_range(M, 1, 3, 1); dy.pickrange(v, 1, 3)
dy.pick_batch(B, [0, 2]); dy.pick_batch(BM, [0, 2], 1); dy.pick_batch(BM, [1, 0]); dy.pick_batch(v, [0, 2])
dy.pick_batch_elem(B, 1); dy.pick_batch_elems(B, [1, 0, 1]); dy.pickneglogsoftmax(v, 1)
dy.pickneglogsoftmax_batch(B, [1, 2]); dy.hinge(v, 1); dy.hinge(v, 1, 2.0); dy.hinge_batch(B, [0, 1])
dy.hinge_dim(M, [0, 1, 0]); dy.hinge_dim(M, [0, 1], d=1); dy.dot_product(v, w); dy.dot_product(M, N)
dy.dot_product(B, v); dy.squared_distance(v, w); dy.squared_distance(B, v); dy.squared_norm(M); dy.squared_norm(B)
dy.l2_norm(v); dy.l2_norm(M); dy.l1_distance(v, w); dy.huber_distance(v, w); dy.huber_distance(v, w, 2.0)
dy.binary_log_loss(dy.logistic(v), dy.inputVector([0, 1, 1])); dy.binary_log_loss(dy.logistic(s), dy.scalarInput(1))
dy.pairwise_rank_loss(s, dy.scalarInput(1.0)); dy.pairwise_rank_loss(s, dy.scalarInput(1.0), 2.0)
dy.poisson_loss(s, 3); dy.reshape(M, (3, 2)); dy.reshape(M, (6,)); dy.reshape(v, (1, 3)); dy.reshape(BM, (6,))
dy.reshape(BM, (3, 2)); dy.reshape(B, (6,)); dy.reshape(B, (6,), batch_size=1); dy.reshape(T, (6, 4))
dy.reshape(T, (4, 3, 2)); dy.reshape(dy.reshape(v, (3, 1)), (3,)); dy.reshape(BM, (2, 3, 2), 1)
dy.reshape(M, (2,), 3); dy.reshape(s, (1, 1)); dy.tanh(v); dy.exp(v); dy.square(v); dy.cube(v); dy.sqrt(dy.square(v))
dy.abs(v); dy.log(dy.abs(v)); dy.logistic(v); dy.rectify(v); dy.erf(v); dy.softsign(v); dy.log_sigmoid(v); dy.elu(v)
dy.elu(v, 2.0); dy.selu(v); dy.silu(v); dy.sin(v); dy.cos(v); dy.tan(v); dy.sinh(v); dy.cosh(v); dy.asinh(v)
dy.acosh(1 + dy.abs(v)); dy.atanh(v * 0.4); dy.asin(v * 0.4); dy.acos(v * 0.4); dy.atan(v); dy.lgamma(dy.square(v))
dy.asin(B * 0.1); dy.argmax(v, "zero_gradient"); dy.argmax(v, "straight_through_gradient")
dy.argmax(B, "zero_gradient"); v ** 2; v ** 3; dy.pow(dy.abs(v), s); dy.abs(v) ** s; dy.nobackprop(v)
dy.flip_gradient(v); dy.scale_gradient(v, 0.1); dy.cumsum(M); dy.cumsum(M, 1); dy.cumsum(v); dy.cumsum(T, 2)
dy.inverse(Q); dy.logdet(Q); dy.trace_of_product(M, N); dy.trace_of_product(v, w); dy.circ_conv(v, w)
dy.circ_corr(v, w); dy.sparsemax(v); dy.sparsemax(v * 0.3); dy.constrained_softmax(v, dy.abs(w) * 0.5)
dy.fold_rows(Q, 3); dy.fold_rows(M, 2); dy.fold_rows(g, 2); dy.filter1d_narrow(M, N[0:2])
dy.filter1d_narrow(M, dy.pick_range(D, 0, 2, 1)); dy.kmax_pooling(M, 2); dy.kmax_pooling(M, 2, 1)
dy.kmax_pooling(M, 1, 0); dy.kmh_ngram(M, 2); dy.kmh_ngram(M, 1); dy.select_rows(M, [1]); dy.select_rows(M, [1, 0])
dy.select_rows(v, [1, 2]); dy.select_rows(B, [0, 2]); dy.select_cols(M, [1, 2])
dy.strided_select(M, [1, 2], [0, 0], [2, 3]); dy.strided_select(v, [2], [0], [3]); dy.colwise_add(M, u)
dy.affine_transform([u, M, v]); dy.affine_transform([u, M, v, N, w]); dy.affine_transform([u, M, dy.transpose(N)])
dy.affine_transform([v, Q, B]); dy.layer_norm(v, w, v); dy.layer_norm(B, v, w); dy.weight_norm(M, s)
dy.conv2d(I, F, [1, 1]); dy.conv2d(I, F, [1, 1], False); dy.conv2d(I, F, [2, 2]); dy.conv2d(I, F, [1, 2], False)
dy.conv2d_bias(I, F, f, [1, 1]); dy.conv2d_bias(I, F, f, [2, 1], False); dy.maxpooling2d(I, [2, 2], [2, 2])
dy.maxpooling2d(I, [2, 3], [1, 2], True); dy.maxpooling2d(I, [2, 2], [2, 2], False)
dy.maxpooling2d(dy.tanh(I), [3, 3], [1, 1], False); dy.vanilla_lstm_gates_concat([v], w, A, A, g, 0.0)
dy.vanilla_lstm_c(v, dy.logistic(g)); dy.vanilla_lstm_h(v, dy.logistic(g)); dy.zeros((2, 3)); dy.zeros(3)
dy.zeroes((3,)); dy.ones((3,)); dy.constant((2, 3), 1.5); dy.zeros((2,), batch_size=2)
dy.constant(2, 3.0, batch_size=2); dy.ones((2, 2), 3); dy.inputTensor(np.arange(6.0).reshape(2, 3)) + s
dy.inputTensor([[1, 2], [3, 4]]) + s; dy.dropout(v, 0.0); dy.noise(v, 0.0); dy.dropout_dim(M, 0, 0.0); L.expr()
dy.parameter(M); M.expr(True); M.expr(False) * v; dy.tanh(M * v + u); dy.softmax(dy.transpose(M) * dy.tanh(M * v))
dy.inputVector([1, 2]) + u; BM * v; dy.std_dim(v, [0], False); dy.sum_dim(B, [0], True); dy.mean_dim(B, [0], False)
dy.pick(BM, 1, 1); dy.emax([v, w, -v]); dy.concatenate([dy.pick(v, 0), dy.pick(w, 1)]); dy.inverse(Q) * v; dy.tanh(s)
dy.exp(-s); dy.log_softmax(v, [0, 1]); dy.sum_elems(dy.cmult(dy.softmax(v), w)); dy.esum([M, M, N])
dy.pick_batch_elems(O, [0, 0, 0]); dy.pick_batch_elems(v, [0, 0]); dy.pick_batch_elems(O, [0])
dy.pick_batch_elems(M, [0, 0]); dy.pick_batch_elems(s, [0, 0]); dy.pick_batch_elem(O, 0)
dy.pickneglogsoftmax_batch(O, [1]); dy.pickneglogsoftmax_batch(v, [1]); dy.pickneglogsoftmax_batch(C, [1])
dy.pickneglogsoftmax_batch(v, [1, 2]); dy.pickneglogsoftmax(O, 1); dy.pickneglogsoftmax(C, 1); dy.hinge(O, 1)
dy.hinge(C, 1); dy.hinge_batch(O, [1]); dy.hinge_batch(v, [1]); dy.hinge_batch(C, [1]); dy.hinge_batch(v, [1, 2])
dy.pick_batch(O, [1]); dy.pick_batch(O, [0, 2]); dy.pick_batch(M, [1], 1); dy.pick_batch(M, [1])
dy.pick_batch(C, [1]); dy.pick_batch(M, [0, 1]); dy.sum_batches(O); dy.mean_batches(O); dy.moment_batches(O, 2)
dy.sum_dim(O, [0], True); dy.mean_dim(O, [0], True); dy.std_dim(O, [0], True); dy.moment_dim(O, [0], 2, True)
dy.sum_dim(O, [], True); dy.mean_dim(M, [1], True); dy.concatenate_to_batch([O]); dy.concatenate_to_batch([O, B])
dy.concatenate_to_batch([M]); dy.concatenate_to_batch([s]); dy.reshape(O, (3,), 1); dy.reshape(O, (1,), 3)
dy.reshape(O, (1, 3)); dy.strided_select(O, [1, 1], [0, 0], [2, 1])
dy.strided_select(M, [1, 1, 1], [0, 0, 0], [1, 2, 1]); dy.noise(O, 0.0)
dy.inputTensor(np.ones((3, 1)), batched=True) + O; dy.inputTensor(np.ones((1,)), batched=True) + s
dy.inputTensor(np.ones((2, 3, 1)), True) + M; L.batch([2]) + B; dy.lookup_batch(L, [2], update=False) * s
dy.pick_batch(s, [0]); dy.softmax(O); dy.log_softmax(O, [1]); dy.sparsemax(O); dy.argmax(O, "zero_gradient")
dy.layer_norm(O, v, w); dy.affine_transform([u, M, O]); M * O; dy.max_dim(O); dy.cumsum(O); dy.concatenate([O, B])
dy.esum([O, B]); dy.squared_distance(O, B); dy.pick(O, 1); dy.pick_range(O, 0, 2); dy.hinge_dim(C, [1])
dy.transpose(O); O[0:2]; O[0:2, 0:1]; v[0:2, 0:1]; B[0:2, 0:1]; dy.fold_rows(dy.transpose(O) + M, 2)
dy.select_rows(O, [1, 2]); dy.logsumexp([O, v])
"""


def expressions(dy, model=None):
    """The parameters by name, and what calls may use; the graph is new."""
    model = model or dy.ParameterCollection()
    parameters = {name: model.add_parameters(array.shape, init=array) for name, array in sorted(ARRAYS.items())}
    for name, array in sorted(TABLES.items()):
        parameters[name] = model.lookup_parameters_from_numpy(array)
    dy.renew_cg()
    scope = dict(parameters, dy=dy, np=np)
    scope["B"] = dy.lookup_batch(parameters["L"], [1, 3])
    scope["O"] = dy.lookup_batch(parameters["L"], [2])
    scope["b"] = dy.pick_batch(scope["B"], [0, 2])
    scope["BM"] = parameters["M"] * dy.concatenate_cols([scope["B"], parameters["v"], parameters["w"]])
    return parameters, scope


def calls():
    """All of them."""
    return [call.strip() for line in CALLS.strip().splitlines() for call in line.split(";") if call.strip()]


def asked(dy, call):
    """Dimensions, value, and the gradients of Σ cos(i) x[i] by parameter, rounded; or the error's class."""
    parameters, scope = expressions(dy)
    x = eval(call, scope)
    shape, count = x.dim()
    value = np.asarray(x.npvalue())
    weights = np.cos(np.arange(value.size)).reshape(value.shape)
    finite = np.isfinite(value).all()
    found = {"dim": [list(shape), count], "value": numbers(value)}
    if finite:
        weighted = dy.cmult(x, dy.inputTensor(weights, batched=count > 1))
        loss = dy.sum_batches(dy.sum_elems(weighted))
        loss.value()
        loss.backward()
        gradients = {name: numbers(one.grad_as_array()) for name, one in sorted(parameters.items())}
        found["gradients"] = {name: one for name, one in gradients.items() if any(one)}
    return found


def numbers(array):
    """All entries, rounded to six digits, what is not finite as text."""
    return [float(format(x, ".6g")) if np.isfinite(x) else str(x) for x in np.asarray(array).reshape(-1).tolist()]
