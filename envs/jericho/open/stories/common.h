! What all our stories share: no status line, no prompt character, fixed release and serial number.
Release 1;
Serial "000000";
Replace DrawStatusLine;
Include "parser";
[ DrawStatusLine; ];
Object LibraryMessages
  with before [;
         Prompt: print "^"; rtrue;
       ];
Include "verblib";

[ Award points; score = score + points; ];

! Start in `room`, without notes about the score and without the library's banner.
[ Begin room; location = room; notify_mode = 0; return 2; ];

! Actions beyond the library's; an object answers to them in its `before`.
[ TalkToSub; "Ask ", (the) noun, " about something."; ];
[ KnockSub; "You knock, to no effect."; ];
[ PourSub; "That is not something to pour."; ];
[ LookBehindSub; <<LookUnder noun>>; ];
[ HangSub; if (second has supporter) <<PutOn noun second>>; "There is nothing to hang it on."; ];
[ HeatSub; "That would not help."; ];
[ UseSub;
  if (second ~= nothing && (second has lockable || second has container)) <<Unlock second noun>>;
  "Say more exactly what you want to do with ", (the) noun, ".";
];
