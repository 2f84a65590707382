package io.lakebloom.spark;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;

/**
 * Calls methods and copies objects of classes that are not on every driver, or not public.
 *
 * Whatever is not there throws. An object of this class remembers methods, and belongs to one thread.
 */
final class Reflection {
    private final Map methods = new HashMap();

    /** Calls a method without arguments. */
    Object call(Object target, String name) throws Exception {
        Map known = (Map) methods.get(target.getClass());
        if (known == null) {
            known = new HashMap();
            methods.put(target.getClass(), known);
        }
        Method method = (Method) known.get(name);
        if (method == null) {
            method = method(target.getClass(), name, new Class[0]);
            known.put(name, method);
        }
        return method.invoke(target, new Object[0]);
    }

    /** A method of a class or of those above it, whoever may call it. */
    static Method method(Class type, String name, Class[] parameters) throws NoSuchMethodException {
        for (Class at = type; at != null; at = at.getSuperclass()) {
            try {
                Method found = at.getDeclaredMethod(name, parameters);
                found.setAccessible(true);
                return found;
            } catch (NoSuchMethodException above) {
                // it may be in a class above
            }
        }
        Method found = type.getMethod(name, parameters); // of an interface
        found.setAccessible(true);
        return found;
    }

    /** A field of an object, of its class or of those above it. */
    static Field field(Object target, String name) throws NoSuchFieldException {
        for (Class at = target.getClass(); at != null; at = at.getSuperclass()) {
            try {
                Field found = at.getDeclaredField(name);
                found.setAccessible(true);
                return found;
            } catch (NoSuchFieldException above) {
                // it may be in a class above
            }
        }
        throw new NoSuchFieldException(target.getClass() + "." + name);
    }

    /** An object with the same fields. Its lists are its own: what is added to them is not in those of the original. */
    static Object copy(Object original) throws Exception {
        Class factory = Class.forName("sun.reflect.ReflectionFactory");
        Object made = factory.getMethod("getReflectionFactory", new Class[0]).invoke(null, new Object[0]);
        Method without = factory.getMethod("newConstructorForSerialization", new Class[] {Class.class, Constructor.class});
        Constructor nothing = Object.class.getDeclaredConstructor(new Class[0]);
        Constructor empty = (Constructor) without.invoke(made, new Object[] {original.getClass(), nothing});
        Object copy = empty.newInstance(new Object[0]);
        for (Class at = original.getClass(); at != Object.class; at = at.getSuperclass()) {
            Field[] fields = at.getDeclaredFields();
            for (int i = 0; i < fields.length; i++) {
                if (!Modifier.isStatic(fields[i].getModifiers())) {
                    fields[i].setAccessible(true);
                    Object value = fields[i].get(original);
                    boolean isList = value != null && value.getClass() == ArrayList.class;
                    fields[i].set(copy, isList ? new ArrayList((ArrayList) value) : value);
                }
            }
        }
        return copy;
    }
}
