// The next move of a winning game of tic-tac-toe, or null. The opponent's random numbers depend on the seed, so the
// game can be simulated in a frame of the same page.
(async () => {
  const frame = document.body.appendChild(document.createElement('iframe'));
  frame.src = location.href;
  await new Promise(resolve => { frame.onload = resolve; });
  const game = frame.contentWindow;
  const board = [...gameState], mine = board.filter(mark => mark === 1).length;

  function play(moves) {
    game.Math.seedrandom(core.agentgymSeed);
    game.core.startEpisodeReal();
    for (const move of moves) game.jQuery(`#ttt-${move}`).click();
  }

  function winning(moves) {
    play(moves);
    if (game.WOB_DONE_GLOBAL) return game.WOB_RAW_REWARD_GLOBAL === 1 ? moves : null;
    const state = [...game.gameState];
    if (moves.length === mine && state.join() !== board.join()) return null;
    const free = [...state.keys()].filter(cell => state[cell] === 0 && (moves.length >= mine || board[cell] === 1));
    for (const cell of free) {
      const found = winning([...moves, cell]);
      if (found) return found;
    }
    return null;
  }

  const found = winning([]);
  frame.remove();
  return found && found.length > mine ? found[mine] : null;
})()
