// SPDX-License-Identifier: Apache-2.0

import java.util.Arrays;

/** See baton_jni.c. */
public final class Example {
  public static void main(String[] args) throws Exception {
    Baton.registerFunc("java.myadd", a -> a[0] instanceof Long ? (Object) ((Long) a[0] + (Long) a[1]) : (Object) ("" + a[0] + a[1]));
    Baton.Obj myadd = Baton.getGlobalFunc("java.myadd");
    System.out.println("myadd(1, 2) = " + myadd.call(1L, 2L));
    System.out.println("myadd(\"a\", \"b\") = " + myadd.call("a", "b"));
    System.out.println("nothing of this name: " + Baton.getGlobalFunc("java.nobody"));

    Baton.registerFunc("java.same", a -> a[0]);
    Baton.Obj same = Baton.getGlobalFunc("java.same");
    System.out.println("values: " + same.call(Long.MIN_VALUE) + " " + same.call(0.5) + " " + same.call(true) + " " + same.call((Object) null));

    // A function is a value: it goes to Baton and comes back.
    Baton.registerFunc("java.callhello", a -> ((Baton.Func) a[0]).call("hello world"));
    Baton.Func print = a -> {
      System.out.println("callback: " + a[0]);
      return null;
    };
    Baton.getGlobalFunc("java.callhello").call(print);
    Object[] names = (Object[]) Baton.getGlobalFunc("runtime.ListGlobalFuncNames").call();
    System.out.println("names: " + Arrays.asList(names).contains("java.myadd"));

    try {
      Baton.registerFunc("java.myadd", a -> null);
    } catch (Baton.Failure e) {
      System.out.println("refused: " + e.getMessage());
    }
    Baton.registerFunc("java.fails", a -> {
      throw new IllegalStateException("too far");
    });
    try {
      Baton.getGlobalFunc("java.fails").call();
    } catch (Baton.Failure e) {
      System.out.println("thrown: " + e.kind + ": " + e.getMessage());
    }

    Thread other = new Thread(() -> System.out.println("another thread: " + myadd.call(20L, 22L)));
    other.start();
    other.join();

    if (args.length > 0) {
      Baton.Obj module = Baton.loadModule(args[0]);
      Baton.Obj executor = (Baton.Obj) Baton.getFunction(module, "default").call();
      Object[] outputs = (Object[]) Baton.getFunction(executor, "run_with").call(new Baton.Tensor(new long[] {2, 3}, 0, 1, 2, 3, 4, 5));
      Baton.Tensor out = (Baton.Tensor) outputs[0];
      System.out.println("model: " + Arrays.toString(out.shape) + " " + Arrays.toString(out.data));
    }
  }
}
