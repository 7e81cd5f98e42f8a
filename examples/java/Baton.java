// SPDX-License-Identifier: Apache-2.0

import java.lang.ref.Cleaner;

/** Baton's functions and objects. Null is null, Long, Double, Boolean and String are themselves, an array of Baton is an Object[], a
 *  tensor a {@link Tensor}, any other object an {@link Obj}. An error of Baton is a {@link Failure}. */
public final class Baton {
  static {
    System.loadLibrary("baton_jni");
  }

  /** A function that both sides can call. */
  public interface Func {
    Object call(Object... args) throws Exception;
  }

  /** A dense tensor of float32 on the CPU. */
  public static final class Tensor {
    public final long[] shape;
    public final float[] data;

    public Tensor(long[] shape, float... data) {
      this.shape = shape;
      this.data = data;
    }
  }

  /** An error of Baton, with its kind. */
  public static final class Failure extends RuntimeException {
    public final String kind;

    public Failure(String kind, String message) {
      super(message);
      this.kind = kind;
    }
  }

  /** An object that only Baton knows; a function can be called. */
  public static final class Obj implements Func {
    private static final Cleaner CLEANER = Cleaner.create();
    final long handle;

    Obj(long handle) {
      this.handle = handle;
      CLEANER.register(this, () -> release(handle));
    }

    @Override
    public Object call(Object... args) {
      try {
        return invoke(handle, args);
      } finally {
        java.lang.ref.Reference.reachabilityFence(this);
      }
    }
  }

  /** The global function of a name, or null. */
  public static native Obj getGlobalFunc(String name);

  /** Registers a function for all languages; a taken name is an error. */
  public static native void registerFunc(String name, Func function);

  /** Loads compiled code. */
  public static native Obj loadModule(String path);

  /** A function of a module, or null. */
  public static native Obj getFunction(Obj module, String name);

  private static native Object invoke(long function, Object[] args);

  private static native void release(long handle);

  private Baton() {}
}
