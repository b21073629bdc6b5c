package agentgym;

import java.util.HashMap;
import java.util.Map;
import main.scala.scienceworld.runtime.SimplifierProcessor$;
import scala.collection.mutable.HashSet;
import scala.collection.mutable.Set;
import scienceworld.input.InputParser$;
import scienceworld.struct.EnvObject;

/**
 * Remembers what the simulator's parser computes again and again within one command.
 *
 * Each method takes the place of a method of `InputParser$` at some of its calls, with the receiver as the first
 * argument; `sciworld/patches.py` redirects the calls. Calls of a JVM are made one at a time, so nothing is locked.
 */
public final class ParserMemo {
    private static final int MOST_TEXTS = 50_000;
    private static final Map<String, String[]> WORDS = new HashMap<>();
    private static final Map<Long, Known> KNOWN = new HashMap<>();

    private record Known(EnvObject object, EnvObject perspective, String[] referents) {}

    private ParserMemo() {}

    /** The first step of parsing a command; objects and their names stay the same until the next one. */
    public static String[] begin(InputParser$ parser, String command) {
        KNOWN.clear();
        return parser.tokenize(command);
    }

    /** The names of an object. */
    public static String[] getObjectReferents(InputParser$ parser, EnvObject object, EnvObject perspective) {
        Known known = KNOWN.get(object.uuid());
        if (known == null || known.object != object || known.perspective != perspective) {
            known = new Known(object, perspective, parser.getObjectReferents(object, perspective));
            KNOWN.put(object.uuid(), known);
        }
        return known.referents;
    }

    /** The words of a name, which depend on nothing else. */
    public static String[] tokenize(InputParser$ parser, String text) {
        String[] words = WORDS.get(text);
        if (words == null) {
            if (WORDS.size() >= MOST_TEXTS) {
                WORDS.clear();
            }
            words = parser.tokenize(text);
            WORDS.put(text, words);
        }
        return words;
    }

    /** All objects of the world, which only commands such as teleporting look at. */
    public static Set<EnvObject> collectUniverse(InputParser$ parser, EnvObject universe, boolean includeHidden) {
        SimplifierProcessor$ simplifications = SimplifierProcessor$.MODULE$;
        if (simplifications.isSimplificationEnabled(simplifications.SIMPLIFICATION_TELEPORT_ACTION())) {
            return parser.collectAccessibleObjects(universe, includeHidden);
        }
        return new HashSet<>();
    }
}
