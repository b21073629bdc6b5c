package agentgym;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import main.scala.scienceworld.runtime.SimplifierProcessor$;
import scala.collection.mutable.HashSet;
import scala.collection.mutable.Set;
import scienceworld.input.InputParser$;
import scienceworld.objects.agent.Agent;
import scienceworld.struct.EnvObject;
import scienceworld.tasks.goals.GoalSequence;
import scienceworld.tasks.goals.ObjMonitor;

/**
 * Remembers what the simulator computes again and again within one command.
 *
 * Each method takes the place of a method of the simulator at some of its calls, with the receiver as the first
 * argument; `sciworld/patches.py` redirects the calls. Calls of a JVM are made one at a time, so nothing is locked.
 */
public final class StepMemo {
    private static final int MOST_TEXTS = 50_000;
    private static final Map<String, String[]> WORDS = new HashMap<>();
    private static final Map<Long, Known> KNOWN = new HashMap<>();

    private static final List<Contents> CONTENTS = new ArrayList<>();
    private static boolean checking = false;

    private record Contents(
            EnvObject object, boolean hidden, boolean connections, scala.collection.immutable.Set<EnvObject> found) {}

    private record Known(EnvObject object, EnvObject perspective, String[] referents) {}

    private StepMemo() {}

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

    /** Check all subgoals. Checking moves no object, so what is in a room stays the same until the end. */
    public static void tick(GoalSequence goals, ObjMonitor monitor, Agent agent) {
        checking = true;
        try {
            goals.tick(monitor, agent);
        } finally {
            checking = false;
            CONTENTS.clear();
        }
    }

    /** The objects in a room, which each of the subgoals goes through. */
    public static scala.collection.immutable.Set<EnvObject> getContainedObjectsAndPortalsRecursive(
            EnvObject object, boolean hidden, boolean connections) {
        for (Contents known : CONTENTS) {
            if (known.object == object && known.hidden == hidden && known.connections == connections) {
                return known.found;
            }
        }
        var found = object.getContainedObjectsAndPortalsRecursive(hidden, connections);
        if (checking) {
            CONTENTS.add(new Contents(object, hidden, connections, found));
        }
        return found;
    }
}
